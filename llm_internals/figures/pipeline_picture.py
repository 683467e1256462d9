"""The large picture of the way from prompt to answer, as an SVG file for the introduction and the README.

The file ``book/_static/pipeline.svg`` is this module's output: ``python -m llm_internals.figures.pipeline_picture``
writes it, and a test compares. Standing alone it follows the reader's light or dark setting; set into a page it takes
the page's colours. On narrow screens the small print goes and the names grow.

Its tokens, numbers and bars are those of the model for "What is the capital of Australia?"; a test recomputes them.
"""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from llm_internals.figures.labels import visible
from llm_internals.figures.pipeline import STAGES

Number = int | float

PROMPT = "What is the capital of Australia?"
PIECES = ("What", " is", " the", " capital", " of", " Australia", "?")
IDS = (1780, 314, 260, 3575, 282, 4617, 47)
VECTORS = (
    (0.12, 0.10, 0.00, 0.02, 0.05, -0.10, -0.18, -0.02),
    (-0.06, 0.01, -0.07, 0.04, 0.18, 0.07, -0.01, -0.08),
    (-0.15, 0.01, -0.07, 0.06, 0.21, 0.05, -0.02, -0.06),
    (-0.01, -0.14, 0.05, 0.13, -0.14, -0.13, -0.05, 0.24),
    (-0.05, -0.03, -0.09, 0.15, 0.11, 0.00, 0.18, -0.04),
    (-0.08, -0.08, 0.04, 0.04, 0.07, -0.05, -0.04, -0.01),
    (-0.16, 0.03, -0.03, 0.12, -0.06, -0.06, -0.02, 0.02),
)
"""The first eight numbers of each token's vector, two decimals."""
FIRST_SCORED = 496
SCORES = (18, 16, 9, 13, 16, 16, 11, 8, 32, 15, 18, 11, 17, 14, 10, 9, 20, 14, 12, 15)
"""Logits of the ids from `FIRST_SCORED` on, behind the whole chat prompt, rounded."""
CHOSEN_ID, CHOSEN_PIECE, CHOSEN_SHARE = 504, "The", 0.81
"""The first token of the answer, and its probability in two decimals."""
ANSWER = ("The", " capital", " of Australia", " is Canberra.")

WIDTH, HEIGHT = 800, 416
BOX_WIDTH, BOX_HEIGHT, GAP = 170, 156, 36
COLUMNS = [6 + column * (BOX_WIDTH + GAP) for column in range(4)]
TOP, BOTTOM = 22, 238

INK, KEPT, CHOSEN = "currentColor", "var(--llm-kept, #0072B2)", "var(--llm-chosen, #C24E00)"
PAGE = "var(--pst-color-background, #fff)"
STYLE = """\
.llm-pipeline { font-family: inherit; }
.llm-pipeline .name { font-size: 19px; font-weight: 600; }
.llm-pipeline .sign { font-size: 16px; font-weight: 600; }
.llm-pipeline .small { font-size: 14px; }
.llm-pipeline .mono { font-size: 14px; font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.llm-pipeline .short { display: none; }
@media (max-width: 560px) {
  .llm-pipeline .name { font-size: 25px; }
  .llm-pipeline .sign { font-size: 24px; }
  .llm-pipeline .small, .llm-pipeline .mono, .llm-pipeline .long { display: none; }
  .llm-pipeline .short { display: inline; font-size: 24px; }
}
svg:root { color: #24292f; font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
@media (prefers-color-scheme: dark) {
  svg:root { color: #e6e8ea; --llm-kept: #5bb4ea; --llm-chosen: #ff9350; --pst-color-background: #14181e; }
}
"""

TITLE = "From a prompt to the next token and back"
DESCRIPTION = (
    "Eight boxes in two rows, joined by arrows. Top row, to the right: prompt, 1 tokenize, 2 embed, 3 forward pass. "
    "Then down, and in the bottom row to the left: 4 logits, 5 sample, 6 detokenize, the answer. "
    "From 5 sample an arrow, 7 loop, leads back up to 2 embed: the drawn token becomes the next input."
)


def picture() -> str:
    """The whole picture as SVG text."""
    names = {stage.number: stage.name for stage in STAGES}
    boxes = [
        _box(0, TOP, "", "prompt", _prompt()),
        _box(1, TOP, "1", names[1], _chips()),
        _box(2, TOP, "2", names[2], _vectors()),
        _box(3, TOP, "3", names[3], _blocks()),
        _box(3, BOTTOM, "4", names[4], _scores()),
        _box(2, BOTTOM, "5", names[5], _draw()),
        _box(1, BOTTOM, "6", names[6], _piece()),
        _box(0, BOTTOM, "", "answer", _answer()),
    ]
    parts = [*boxes, *_arrows(names[7])]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="llm-pipeline" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="llm-pipeline-title llm-pipeline-desc">\n<title id="llm-pipeline-title">{TITLE}</title>\n'
        f'<desc id="llm-pipeline-desc">{DESCRIPTION}</desc>\n<style>\n{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _box(column: int, y: Number, sign: str, name: str, inside: Iterable[str]) -> str:
    """A frame with its number and name; what stands inside is drawn from its upper left corner."""
    short = name.split()[0]
    middle = BOX_WIDTH / 2 + (0 if not sign else 8)
    if short != name:
        title = _text(middle, 33, name, "name long") + _text(middle, 33, short, "name short")
    else:
        title = _text(middle, 33, name, "name")
    badge = _badge(0, 0, sign, KEPT) if sign else ""
    frame = (
        f'<rect width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="12" fill="none" stroke="{INK}" stroke-opacity=".35" '
        'stroke-width="1.5"/>'
    )
    return f'<g transform="translate({COLUMNS[column]} {y})">\n{frame}\n{badge}{title}\n{"".join(inside)}\n</g>'


def _badge(x: Number, y: Number, sign: str, color: str) -> str:
    """A disc with the number of a stage."""
    disc = f'<circle cx="{x + 16}" cy="{y + 2}" r="17" fill="{color}"/>'
    return disc + _text(x + 16, y + 8, sign, "sign", fill=PAGE)


def _text(x: Number, y: Number, text: str, kind: str, *, fill: str = INK, anchor: str = "middle") -> str:
    """Text of one of the kinds that the style sheet knows."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'


def _rect(x: Number, y: Number, width: Number, height: Number, fill: str, opacity: Number = 1.0) -> str:
    """A filled rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" fill-opacity="{opacity:g}"/>'


def _prompt() -> list[str]:
    """The question in three lines."""
    lines = ("“What is", "the capital", "of Australia?”")
    text = [_text(BOX_WIDTH / 2, 72 + 26 * row, line, "small") for row, line in enumerate(lines)]
    return [*text, _text(BOX_WIDTH / 2, 98, "“What…?”", "short")]


def _chips() -> list[str]:
    """The tokens, three or two in a row."""
    parts = []
    for row, part in enumerate((PIECES[0:3], PIECES[3:5], PIECES[5:7])):
        labels = [visible(piece) for piece in part]
        x = (BOX_WIDTH - sum(8.4 * len(label) + 14 for label in labels) + 4) / 2
        for label in labels:
            width, y = 8.4 * len(label) + 10, 52 + 33 * row
            parts.append(
                f'<rect x="{x:g}" y="{y}" width="{width:g}" height="25" rx="5" fill="{KEPT}" fill-opacity=".16"/>'
            )
            parts.append(_text(x + width / 2, y + 17.5, label, "mono"))
            x += width + 4
    return parts


def _vectors() -> list[str]:
    """Each id with the first numbers of its vector as shaded cells."""
    parts = []
    for row, (token_id, vector) in enumerate(zip(IDS, VECTORS, strict=True)):
        y = 48 + 14 * row
        parts.append(_text(50, y + 11, str(token_id), "mono", anchor="end"))
        parts += [_cell(58 + 12.5 * column, y, value) for column, value in enumerate(vector)]
    return parts


def _cell(x: Number, y: Number, value: Number) -> str:
    """One number of a vector: blue above zero, vermilion below, the stronger the larger."""
    return _rect(x, y, 11.5, 13, KEPT if value >= 0 else CHOSEN, round(min(1.0, 0.06 + 4 * abs(value)), 2))


def _blocks() -> list[str]:
    """A stack of blocks, and what stays behind in the cache."""
    look = f'fill="{PAGE}" stroke="{KEPT}" stroke-width="1.5"'
    plates = [f'<path d="M{34 + 3 * k} {116 - 11 * k} h66 l14 -18 h-66 z" {look}/>' for k in range(6)]
    return [*plates, _text(146, 92, "× 30", "small"), _text(BOX_WIDTH / 2, 143, "keeps keys and values", "small")]


def _scores() -> list[str]:
    """One bar a token for a stretch of the vocabulary; the one that will be drawn stands out."""
    bars = [
        _rect(16 + 7 * k, 122 - 2.2 * score, 5, 2.2 * score, CHOSEN if FIRST_SCORED + k == CHOSEN_ID else KEPT)
        for k, score in enumerate(SCORES)
    ]
    return [*bars, _text(BOX_WIDTH / 2, 143, "one score a token", "small")]


def _draw() -> list[str]:
    """The line from 0 to 1 with the drawn token's share, and the random number that falls onto it."""
    width = BOX_WIDTH - 32
    share = CHOSEN_SHARE * width
    pointer = f'<path d="M78 56 v22 m-6 -8 l6 9 l6 -9" fill="none" stroke="{INK}" stroke-width="2.5"/>'
    bins = _rect(16, 84, share - 1, 32, CHOSEN) + _rect(16 + share, 84, width - share, 32, KEPT, 0.3)
    label = _text(16 + share / 2, 105, CHOSEN_PIECE, "mono", fill=PAGE)
    return [pointer, bins, label, _text(BOX_WIDTH / 2, 143, "draw one id", "small")]


def _piece() -> list[str]:
    """The id, and the text that it stands for."""
    arrow = f'<path d="M85 80 v13 m-5 -6 l5 7 l5 -7" fill="none" stroke="{INK}" stroke-width="2"/>'
    chip = f'<rect x="53" y="100" width="64" height="32" rx="6" fill="{CHOSEN}" fill-opacity=".16"/>'
    text = [_text(85, 121, CHOSEN_PIECE, "mono"), _text(85, 124, CHOSEN_PIECE, "short")]
    return [_text(85, 70, str(CHOSEN_ID), "mono"), arrow, chip, *text]


def _answer() -> list[str]:
    """The whole answer; its first token, which this round has made, in colour."""
    first = f'<tspan fill="{CHOSEN}" font-weight="700">{ANSWER[0]}</tspan>'
    lines = [f"“{first}{ANSWER[1]}", ANSWER[2].strip(), ANSWER[3].strip() + "”"]
    text = [
        f'<text x="{BOX_WIDTH / 2:g}" y="{72 + 26 * row}" class="small" text-anchor="middle" fill="{INK}">{line}</text>'
        for row, line in enumerate(lines)
    ]
    return [*text, _text(BOX_WIDTH / 2, 98, f"“{CHOSEN_PIECE}…”", "short", fill=CHOSEN)]


def _arrows(loop: str) -> Sequence[str]:
    """The arrows between the boxes, and the one that closes the loop."""
    right = [_arrow(COLUMNS[column] + BOX_WIDTH + 6, TOP + 78, GAP - 12, 0) for column in range(3)]
    left = [_arrow(COLUMNS[column] - 6, BOTTOM + 78, -(GAP - 12), 0) for column in (3, 2, 1)]
    down = _arrow(COLUMNS[3] + BOX_WIDTH / 2, TOP + BOX_HEIGHT + 8, 0, BOTTOM - TOP - BOX_HEIGHT - 16)
    x, middle = COLUMNS[2] + BOX_WIDTH / 2 - 12, (TOP + BOX_HEIGHT + BOTTOM) / 2
    up = _arrow(x, BOTTOM - 8, 0, -(BOTTOM - TOP - BOX_HEIGHT - 16), CHOSEN, 3)
    name = _text(x + 56, middle + 7, loop, "name", fill=CHOSEN, anchor="start")
    return [*right, *left, down, up, _badge(x + 16, middle - 2, "7", CHOSEN), name]


def _arrow(x: Number, y: Number, dx: Number, dy: Number, color: str = INK, width: Number = 2) -> str:
    """An arrow along one axis, with an open head."""
    ux, uy = (dx > 0) - (dx < 0), (dy > 0) - (dy < 0)
    left, right = (-8 * ux + 6 * uy, -8 * uy + 6 * ux), (-8 * ux - 6 * uy, -8 * uy - 6 * ux)
    head = f"m{left[0]} {left[1]} l{-left[0]} {-left[1]} l{right[0]} {right[1]}"
    return f'<path d="M{x:g} {y:g} l{dx:g} {dy:g} {head}" fill="none" stroke="{color}" stroke-width="{width}"/>'


if __name__ == "__main__":
    Path("book/_static/pipeline.svg").write_text(picture(), encoding="utf-8", newline="\n")
