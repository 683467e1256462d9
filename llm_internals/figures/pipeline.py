"""The way from prompt to token as a picture: a strip that opens each chapter, and the large one of the introduction.

Both are made of `STAGES`, the one list of stages and of the chapters that tell about them. They draw in the page's own
colours, so that they read in light and in dark mode.
"""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One stage: its number, its name, and the file of its chapter without the ending."""

    number: int
    name: str
    chapter: str

    @property
    def label(self) -> str:
        """Number and name."""
        return f"{self.number} {self.name}"


STAGES = (
    Stage(1, "tokenize", "01_tokenization"),
    Stage(2, "embed", "02_embedding_and_rope"),
    Stage(3, "forward pass", "03_forward_pass"),
    Stage(4, "logits", "04_logits"),
    Stage(5, "sample", "05_sampling"),
    Stage(6, "detokenize", "06_detokenization"),
    Stage(7, "loop", "07_generation_loop"),
)

LIT = "var(--llm-kept, #0072B2)"
PAGE = "var(--pst-color-background, var(--jp-layout-color0, Canvas))"
QUIET = "var(--pst-color-text-muted, var(--jp-ui-font-color2, currentColor))"
RAIL = f"linear-gradient({QUIET}, {QUIET}) center 1.05em / 100% 1.5px no-repeat"
DISC = (
    "display: block; width: 2.1em; height: 2.1em; margin: 0 auto .2em; box-sizing: border-box; border-radius: 50%; "
    "line-height: 1.9em; font-variant-numeric: tabular-nums"
)


def strip(lit: Collection[int]) -> str:
    """The stages as stops on a line, those in `lit` filled; HTML that wraps into rows on a narrow page.

    A stop links to its chapter's notebook. The build turns that into a link to the page, or into plain text where the
    book has no such chapter (``tools/sphinx_ext/notebook_outputs.py``).

    Raises
    ------
    ValueError
        If `lit` holds something else than the number of a stage.
    """
    numbers = [stage.number for stage in STAGES]
    if not set(lit) <= set(numbers):
        raise ValueError(f"stages must be out of {numbers[0]} to {numbers[-1]}, but are {sorted(lit)}")
    stops = [_stop("“ ”", "prompt", None, lit=False)]
    stops += [_stop(str(stage.number), stage.name, stage.chapter, lit=stage.number in lit) for stage in STAGES]
    return (
        '<nav class="llm-strip" aria-label="Stages of a response">\n'
        '<ol role="list" style="display: flex; flex-wrap: wrap; row-gap: .6em; list-style: none; padding: 0; '
        'margin: .5em 0 1em">\n' + "\n".join(stops) + "\n</ol>\n</nav>"
    )


def _stop(sign: str, name: str, chapter: str | None, *, lit: bool) -> str:
    """One stop: a disc on the rail with the name beneath; a lit one is filled, bold, and marked as the current step."""
    edge, ground, sign_color = (LIT, LIT, PAGE) if lit else (QUIET, PAGE, "inherit")
    disc = f"{DISC}; border: 2px solid {edge}; background: {ground}; color: {sign_color}"
    text = f'<span aria-hidden="true" style="{disc}">{sign}</span>{name}'
    if chapter is not None:
        text = f'<a href="{chapter}.ipynb" style="color: inherit; text-decoration: none">{text}</a>'
    current = ' aria-current="step"' if lit else ""
    look = "font-weight: 600" if lit else f"color: {QUIET}"
    return (
        f'<li{current} style="flex: 1 1 5.8em; margin: 0; text-align: center; font-size: .82em; line-height: 1.3; '
        f'background: {RAIL}; {look}">{text}</li>'
    )
