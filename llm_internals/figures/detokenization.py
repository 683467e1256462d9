"""The figures of ``06_detokenization``: bytes, the tokens that cut them, and when they can be shown.

Matplotlib's font has no emoji and few scripts, so figures write code points and bytes where the page itself, in HTML,
shows the characters.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from llm_internals.figures.labels import visible
from llm_internals.figures.style import (
    FAINT,
    INK,
    KEPT,
    MONOSPACE,
    OTHER,
    REMOVED,
    RULE,
    SMALL,
    SOFT,
    TEXT,
    WIDTH,
    new_figure,
    styled,
)

Number = int | float

LAST_DRAWN = 0x52F
"""Up to here (Latin, Greek, Cyrillic) the figures' font draws text; what lies beyond is written as code points."""
SMALLEST = 8.0
"""Points, 11 pixels on the page: for labels in boxes that are as wide as a byte."""
WAITS = "#F3DCEA"
"""Pale purple: text that waits because a stop string may be growing."""


@dataclass(frozen=True)
class Arrival:
    """One token of a stream, and what a detokenizer did with it.

    Attributes
    ----------
    id : int
    data : bytes
        What the token stands for.
    piece : str
        The text that was shown when it came.
    held : str
        The whole characters that wait after it, since they may begin a stop string ...
    unfinished : bytes
        ... and the beginning of a character behind them.
    """

    id: int
    data: bytes
    piece: str
    held: str
    unfinished: bytes


def spelt(text: str | bytes) -> str:
    r"""A token or a piece of text as the figures can write it: what their font lacks by code points or in hexadecimal.

    >>> spelt(" estás"), spelt("이"), spelt(b" \xec"), spelt(b"\x9d")
    ('␣estás', 'U+C774', '␣ec', '9d')
    """
    if isinstance(text, bytes):
        try:
            return spelt(text.decode())
        except UnicodeDecodeError:
            return "".join("␣" if byte == 0x20 else f"{byte:02x}" for byte in text)
    if all(ord(character) <= LAST_DRAWN for character in text):
        return visible(text)
    return " ".join(f"U+{ord(character):04X}" for character in text.strip())


@styled
def byte_alphabet(characters: Sequence[str], named: Collection[int]) -> Figure:
    """The 256 bytes as a square, each with its printable character; those that stand for themselves are left plain.

    The bytes in `named` are set off.
    """
    figure = new_figure(5.4)
    axes = figure.add_subplot()
    for byte, character in enumerate(characters):
        row, column = divmod(byte, 16)
        replaced = character != chr(byte)
        ground = KEPT if byte in named else SOFT if replaced else "none"
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=ground, edgecolor=RULE, linewidth=0.8))
        axes.text(
            column + 0.5,
            row + 0.52,
            character,
            ha="center",
            va="center",
            color="white" if byte in named else INK,
            weight="bold" if byte in named else "normal",
            family=MONOSPACE,
        )
    digits = [f"{digit:x}" for digit in range(16)]
    axes.set_xlim(0, 16)
    axes.set_ylim(16, 0)
    axes.set_xticks(np.arange(16) + 0.5, [f"_{digit}" for digit in digits])
    axes.set_yticks(np.arange(16) + 0.5, [f"{digit}_" for digit in digits])
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    axes.set_xlabel("second hexadecimal digit of the byte")
    axes.set_ylabel("first digit")
    axes.spines[:].set_visible(False)
    return figure


@styled
def cuts(ids: Sequence[int], tokens: Sequence[bytes]) -> Figure:
    """The same bytes cut twice: above into tokens, below into characters.

    The tokens' bytes, joined, have to be UTF-8. A line runs down from every border between characters, so that one sees
    which tokens cross it, and which borders of tokens fall into a character.
    """
    data = b"".join(tokens)
    figure = new_figure(2.3)
    axes = figure.add_subplot()
    _lane(axes, 2, [len(token) for token in tokens], [str(id) for id in ids], SOFT)
    _lane(axes, 1, [1] * len(data), [f"{byte:02x}" for byte in data], "none")
    characters = data.decode()
    sizes = [len(character.encode()) for character in characters]
    _lane(axes, 0, sizes, [f"U+{ord(character):04X}" for character in characters], WAITS)
    for edge in accumulate(sizes, initial=0):
        axes.plot([edge, edge], [0, 3], color=OTHER, linewidth=1.6)
    axes.set_xlim(-0.1, len(data) + 0.1)
    axes.set_ylim(-0.1, 3.1)
    axes.set_yticks([2.5, 1.5, 0.5], ["tokens (ids)", "bytes", "characters"], fontsize=TEXT, color=INK)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


@styled
def character_machine() -> Figure:
    """The hold-back rule for bytes: how many bytes of the character are still missing, and what each byte does to that.

    The byte values are those of UTF-8; second bytes that its table narrows are left to the text.
    """
    figure = new_figure(3.9)
    axes = _canvas(figure, height=3.9)
    start, three, two, one = (1.15, 1.95), (3.2, 1.95), (4.75, 1.95), (6.3, 1.95)
    for place, label in ((three, "3 bytes\nmissing"), (two, "2 bytes\nmissing"), (one, "1 byte\nmissing")):
        _state(axes, place, label, SOFT)
    _state(axes, start, "nothing\nwaits", "white")
    _move(axes, (start[0] + 0.45, start[1]), (three[0] - 0.45, three[1]), "f0–f4", (2.18, 2.05))
    _move(axes, start, two, "e0–ef", (2.95, 2.77), bend=-0.42)
    _move(axes, start, one, "c2–df", (3.72, 3.3), bend=-0.5)
    _move(axes, (three[0] + 0.45, three[1]), (two[0] - 0.45, two[1]), "80–bf", (3.975, 2.05))
    _move(axes, (two[0] + 0.45, two[1]), (one[0] - 0.45, one[1]), "80–bf", (5.525, 2.05))
    _move(axes, one, start, "80–bf: show the character", (3.72, 0.72), bend=-0.36, color=KEPT)
    _loop(axes, start, "00–7f:\nshow it")
    axes.text(
        WIDTH / 2,
        0.06,
        "any other byte: what waits is broken and shown as � (U+FFFD), and this byte starts anew;\n"
        "where nothing waits, this byte itself becomes the �",
        ha="center",
        va="bottom",
        color=FAINT,
        fontsize=SMALL,
    )
    return figure


@styled
def stop_machine(stop: str) -> Figure:
    """The hold-back rule for a stop string: which part of it the text so far ends in, and what the next letter does.

    A letter that breaks the match shows the held letters, but not the longest end of them, this letter included, with
    which the stop string may begin anew.
    """
    figure = new_figure(2.3)
    axes = _canvas(figure, height=2.3)
    places = [(1.0 + index * (WIDTH - 2.0) / len(stop), 0.95) for index in range(len(stop) + 1)]
    for length, place in enumerate(places):
        done = length == len(stop)
        label = "stop" if done else f"held\n{visible(stop[:length])}" if length else "nothing\nheld"
        _state(axes, place, label, REMOVED if done else WAITS if length else "white")
    for length, letter in enumerate(stop):
        (x, y), (next_x, _) = places[length], places[length + 1]
        _move(axes, (x + 0.45, y), (next_x - 0.45, y), visible(letter), ((x + next_x) / 2, y + 0.12))
    for length in range(1, len(stop)):
        _fall_back(axes, stop, length, places)
    axes.text(
        WIDTH / 2,
        0.06,
        "every other letter: show all that is held, and the letter, and go back to the beginning",
        ha="center",
        va="bottom",
        color=FAINT,
        fontsize=SMALL,
    )
    return figure


@styled
def timeline(arrivals: Sequence[Arrival], ended: str = "") -> Figure:
    """A stream over time: bytes that have come, bytes that were shown, and between the two lines what waits.

    Below, at each step, the token that came and the text that was shown. `ended` is written where the stream ends.
    """
    steps = [*range(len(arrivals) + 1), len(arrivals) + 0.8]
    come = _staircase([len(arrival.data) for arrival in arrivals])
    shown = _staircase([len(arrival.piece.encode()) for arrival in arrivals])
    sizes = [(len(arrival.held.encode()), len(arrival.unfinished)) for arrival in arrivals]
    held, unfinished = np.array([(0, 0), *sizes, sizes[-1]]).T
    figure = new_figure(5.2)
    chart, texts = figure.subplots(2, 1, sharex=True, height_ratios=[1, 1])
    band = {"step": "post", "linewidth": 0}
    chart.fill_between(steps, shown, shown + held, color=WAITS, label="waits: may be a stop string", **band)
    begin = come - unfinished
    chart.fill_between(
        steps, begin, come, facecolor=SOFT, hatch="////", edgecolor=KEPT, label="waits: part of a character", **band
    )
    chart.step(steps, come, where="post", color=FAINT, linewidth=1.4, label="bytes that have come")
    chart.step(steps, shown, where="post", color=KEPT, linewidth=2.4, label="bytes that were shown")
    chart.set_ylabel("bytes")
    chart.set_ylim(0, come[-1] * 1.04)
    chart.legend(loc="upper left", frameon=False, fontsize=SMALL, labelcolor=INK)
    chart.annotate(ended, (len(arrivals), come[-1]), (-8, -2), textcoords="offset points", ha="right", va="top")
    _text_rows(texts, arrivals)
    texts.set_xlim(0.4, steps[-1])
    texts.set_xticks([1, *range(5, len(arrivals) + 1, 5)])
    return figure


def stepper(name: str, arrivals: Sequence[Arrival]) -> dict[str, object]:
    """A stream as the interactive part ``detokenizer_stepper`` takes it.

    >>> stepper("a", [Arrival(7, b" a", " a", "", b"")])["steps"]
    [{'id': 7, 'bytes': '20 61', 'piece': ' a', 'held': '', 'unfinished': ''}]
    """
    steps = [
        {
            "id": arrival.id,
            "bytes": arrival.data.hex(" "),
            "piece": arrival.piece,
            "held": arrival.held,
            "unfinished": arrival.unfinished.hex(" "),
        }
        for arrival in arrivals
    ]
    return {"name": name, "steps": steps}


def _staircase(sizes: Sequence[int]) -> Int[np.ndarray, " points"]:
    """The running total, from 0 before the first step to the last value twice, so that its line has a length."""
    total = [*accumulate(sizes, initial=0)]
    return np.array([*total, total[-1]])


def _lane(axes: Axes, y: Number, sizes: Sequence[int], labels: Sequence[str], ground: str) -> None:
    """A row of boxes end to end."""
    lefts = accumulate(sizes, initial=0)
    for left, size, label in zip(lefts, sizes, labels, strict=False):
        axes.add_patch(
            Rectangle((left + 0.04, y + 0.1), size - 0.08, 0.8, facecolor=ground, edgecolor=REMOVED, linewidth=0.8)
        )
        axes.text(left + size / 2, y + 0.5, label, ha="center", va="center", fontsize=SMALLEST, family=MONOSPACE)


def _canvas(figure: Figure, height: Number) -> Axes:
    """Axes without marks, about in inches, in which circles are round."""
    axes = figure.add_subplot()
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, height)
    axes.set_aspect("equal")
    axes.set_axis_off()
    return axes


def _state(axes: Axes, place: tuple[Number, Number], label: str, ground: str) -> None:
    """A state: a circle with its name."""
    axes.add_patch(Circle(place, 0.45, facecolor=ground, edgecolor=INK, linewidth=1.2, zorder=3))
    axes.text(*place, label, ha="center", va="center", fontsize=SMALL, linespacing=1.25, zorder=4)


def _move(
    axes: Axes,
    begin: tuple[Number, Number],
    end: tuple[Number, Number],
    label: str,
    label_place: tuple[Number, Number],
    *,
    bend: Number = 0.0,
    color: str = INK,
) -> None:
    """An arrow from state to state with what causes it; a bent one runs between the edges of the circles."""
    gap = 0.0 if bend == 0 else 33.0  # points: the radius of a circle
    arrow = FancyArrowPatch(
        begin,
        end,
        arrowstyle="-|>",
        mutation_scale=12,
        connectionstyle=f"arc3,rad={bend}",
        shrinkA=gap,
        shrinkB=gap,
        color=color,
        linewidth=1.3,
    )
    axes.add_patch(arrow)
    axes.text(*label_place, label, ha="center", va="bottom", color=color, fontsize=TEXT, family=MONOSPACE)


def _loop(axes: Axes, place: tuple[Number, Number], label: str, *, above: bool = False) -> None:
    """An arrow from a state back to itself, at its left side or above it."""
    x, y = place
    begin, end, at, align = (
        ((x - 0.16, y + 0.42), (x + 0.16, y + 0.42), (x, y + 0.78), ("center", "bottom"))
        if above
        else ((x - 0.3, y - 0.34), (x - 0.02, y - 0.45), (x - 0.62, y - 0.72), ("center", "top"))
    )
    arrow = FancyArrowPatch(
        begin,
        end,
        arrowstyle="-|>",
        mutation_scale=12,
        connectionstyle="arc3,rad=-1.6" if above else "arc3,rad=1.6",
        color=KEPT,
        linewidth=1.3,
    )
    axes.add_patch(arrow)
    axes.text(*at, label, ha=align[0], va=align[1], color=KEPT, fontsize=TEXT, family=MONOSPACE)


def _fall_back(axes: Axes, stop: str, length: int, places: Sequence[tuple[Number, Number]]) -> None:
    """Draw where a letter leads that breaks the match after `length` letters and yet keeps a part of it."""
    for letter in sorted(set(stop) - {stop[length]}):
        seen = stop[:length] + letter
        left = next(kept for kept in range(length, -1, -1) if seen.endswith(stop[:kept]))
        if left == length:
            _loop(axes, places[length], f"{visible(letter)}: show {visible(seen[: len(seen) - left])}", above=True)
        elif left:
            (x, y), (end, _) = places[length], places[left]
            label = f"{visible(letter)}: show {visible(seen[: len(seen) - left])}"
            _move(axes, (x, y), (end, y), label, ((x + end) / 2, y + 0.72), bend=0.5, color=KEPT)


def _text_rows(axes: Axes, arrivals: Sequence[Arrival]) -> None:
    """Write what came and what was shown at each step, upwards."""
    style: dict[str, object] = {"rotation": 90, "ha": "center", "va": "top", "fontsize": SMALL, "in_layout": False}
    for step, arrival in enumerate(arrivals, start=1):
        axes.text(step, 0.97, _shortened(spelt(arrival.data), 10), color=INK, **style, family=MONOSPACE)
        axes.text(step, 0.59, _shortened(spelt(arrival.piece), 17), color=KEPT, **style, family=MONOSPACE)
    axes.axhline(0.62, color=RULE, linewidth=0.8)
    axes.set_ylim(0, 1)
    axes.set_yticks([0.81, 0.3], ["came", "shown"], fontsize=TEXT, color=INK)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("tokens so far")
    axes.spines["left"].set_visible(False)


def _shortened(text: str, longest: int) -> str:
    """A text, cut where it would run out of its row."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
