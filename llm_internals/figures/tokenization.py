"""The figures of ``01_tokenization``: texts as rows of tokens, sums in columns, and what languages cost.

Every function takes the text of tokens or counts that the page has computed, calls no stage, and returns a figure of
fixed size.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

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

ADVANCE = 0.602
"""Width of a character of this font, in its size."""
ROW = 0.36
"""Inches from one row of tokens to the next."""
MARKERS = ("o", "s", "D", "v", "^")
COLORS = (KEPT, FAINT, OTHER, FAINT, FAINT)


@styled
def merges(
    rows: Sequence[Sequence[str]], labels: Sequence[str], notes: Sequence[str], heads: tuple[str, str]
) -> Figure:
    """A text merged step by step, read downwards: a row after each merge, with what this merge made in full colour.

    Parameters
    ----------
    rows : sequence of sequences of str
        The tokens after each step, the first row before any; all rows spell the same text.
    labels, notes : sequence of str
        What stands before and behind each row.
    heads : (str, str)
        What the labels and the notes are.
    """
    length = sum(map(len, rows[0]))
    figure = new_figure(0.35 + ROW * len(rows))
    axes = _blank_axes(figure, (0.11, 0, 0.72, 1))
    size = min(TEXT + 1, WIDTH * 0.72 / length * 72 / ADVANCE * 0.86)
    seen: set[tuple[int, int]] = set()
    for line, row in enumerate(rows):
        spans = _spans(row)
        made = {span for span in spans if line and span not in seen}
        seen.update(spans)
        for (start, end), token in zip(spans, row, strict=True):
            _box(axes, start, -line, end - start, token, size, strong=(start, end) in made)
        axes.text(-0.015 * length, -line, labels[line], ha="right", va="center", color=INK, size=TEXT)
        axes.text(1.015 * length, -line, notes[line], ha="left", va="center", color=FAINT, size=TEXT)
    for x, side, head in ((-0.015, "right", heads[0]), (1.015, "left", heads[1])):
        axes.text(x * length, 0.75, head, ha=side, va="center", color=FAINT, size=SMALL)
    axes.set_xlim(0, length)
    axes.set_ylim(0.5 - len(rows), 0.5 + 0.35 / ROW)
    return figure


@styled
def sums(panels: Sequence[tuple[Sequence[str], Sequence[str], Sequence[str]]], titles: Sequence[str]) -> Figure:
    """Sums written in columns, the units below each other, with the token that holds the units in full colour.

    Parameters
    ----------
    panels : sequence of (first number, second number, their sum)
        Each number as its tokens.
    titles : sequence of str
        What each panel shows.
    """
    width = 1 + max(len("".join(number)) for panel in panels for number in panel)
    figure = new_figure(2.1)
    axes = _blank_axes(figure, (0, 0, 1, 1))
    for index, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        right = (index + 1) * (width + 1.6)
        for line, number in enumerate(panel):
            spans, shift = _spans(number), right - len("".join(number))
            for place, ((start, end), token) in enumerate(zip(spans, number, strict=True)):
                last = place == len(number) - 1
                _box(axes, shift + start, -line, end - start, token, TEXT + 5, strong=last)
        axes.text(right - width - 0.2, -1, "+", ha="center", va="center", color=INK, size=TEXT + 5)
        axes.plot([right - width - 0.5, right], [-1.5, -1.5], color=INK, linewidth=1.2)
        axes.text(right, 0.85, title, ha="right", va="center", color=INK, size=TEXT)
    axes.set_xlim(0.6, len(panels) * (width + 1.6) + 0.4)
    axes.set_ylim(-2.6, 1.3)
    return figure


@styled
def language_cost(
    languages: Sequence[str], counts: Int[np.ndarray, "languages vocabularies"], names: Sequence[str]
) -> Figure:
    """How many tokens one sentence has in each language, a mark for each vocabulary.

    The first language is the one to compare with: a vertical line marks its number in the first vocabulary. The first
    and the third vocabulary are in colour. The languages stand in the order in which they are given.
    """
    values = np.asarray(counts)
    figure = new_figure(1.3 + 0.27 * len(languages))
    axes = figure.add_subplot()
    places = np.arange(len(languages))
    axes.hlines(places, values.min(axis=1), values.max(axis=1), color=RULE, linewidth=3, zorder=1)
    axes.axvline(values[0, 0], color=REMOVED, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    for column, (name, marker, color) in enumerate(zip(names, MARKERS, COLORS, strict=True)):
        filled = color != FAINT
        axes.scatter(
            values[:, column], places, marker=marker, s=46 if filled else 30, label=name, zorder=3 if filled else 2,
            facecolor=color if filled else "white", edgecolor=color, linewidth=1.1,
        )  # fmt: skip
    axes.set_yticks(places, languages, color=INK, fontsize=TEXT)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(languages) - 0.4, -0.6)
    axes.set_xlim(0, values.max() * 1.04)
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"tokens (dashed: {values[0, 0]}, as in {languages[0]})")
    axes.legend(loc="lower center", bbox_to_anchor=(0.42, 1.0), ncols=len(names), frameon=False, handletextpad=0.1,
                columnspacing=1.2, fontsize=SMALL)  # fmt: skip
    return figure


def _blank_axes(figure: Figure, place: tuple[Number, Number, Number, Number]) -> Axes:
    """Axes without lines or ticks at a fixed place: left, bottom, width, height, in shares of the figure."""
    figure.set_layout_engine("none")
    axes = figure.add_axes(place)
    axes.set_axis_off()
    return axes


def _spans(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Where each token begins and ends, in characters.

    >>> _spans(["th", "e"])
    [(0, 2), (2, 3)]
    """
    ends = np.cumsum([len(token) for token in tokens]).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _box(axes: Axes, x: Number, y: Number, width: Number, token: str, size: Number, *, strong: bool) -> None:
    """A token in a box as wide as its characters: strong, pale, or an outline if it is a single character."""
    face = KEPT if strong else SOFT if len(token) > 1 else "white"
    edge = KEPT if strong else FAINT if len(token) > 1 else REMOVED
    style = "round,pad=0,rounding_size=0.14"
    axes.add_patch(
        FancyBboxPatch((x + 0.06, y - 0.36), width - 0.12, 0.72, style, facecolor=face, edgecolor=edge, linewidth=0.8)
    )
    color = "white" if strong else INK
    for place, character in enumerate(visible(token)):
        axes.text(x + place + 0.5, y, character, ha="center", va="center_baseline", color=color, size=size,
                  family=MONOSPACE)  # fmt: skip
