"""The figures of ``00_one_response``: one look at each stage, from arrays that the page has computed.

Every function takes NumPy arrays and the text of the tokens, calls no stage, and returns a figure of fixed size.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from llm_internals.figures.labels import visible
from llm_internals.figures.style import (
    AMOUNT,
    CHOSEN,
    FAINT,
    INK,
    KEPT,
    MONOSPACE,
    OTHER,
    REMOVED,
    RULE,
    SIGNED,
    SMALL,
    SOFT,
    TEXT,
    WIDTH,
    new_figure,
    styled,
)

Number = int | float

ROW = 0.29
"""Inches that one row of a list needs, at the size of `TEXT`."""
CHARACTER = 0.088
"""Inches that one character of monospaced text needs, at the size of `TEXT`."""

HANGING = 6
"""How many names can hang below the number line before it gets taller than it is worth."""


@styled
def prompt_vectors(
    pieces: Sequence[str], vectors: Float[np.ndarray, "seq hidden_size"], first: int = 48, rows: int = 12
) -> Figure:
    """The vectors of the first `rows` tokens as a heat map of their first `first` numbers.

    The colour scale is symmetric around zero and ends at the largest absolute value shown.
    """
    shown = np.asarray(vectors)[:rows, :first]
    limit = float(np.abs(shown).max())
    figure = new_figure(0.9 + ROW * len(shown))
    axes = figure.add_subplot()
    image = axes.pcolormesh(shown, cmap=SIGNED, vmin=-limit, vmax=limit, edgecolors="none")
    axes.invert_yaxis()
    _token_ticks(axes, "y", pieces[: len(shown)])
    axes.set_xticks(np.arange(0, first, 8) + 0.5, [str(dimension) for dimension in range(0, first, 8)])
    axes.set_xlabel(f"dimension (the first {shown.shape[1]} of {np.shape(vectors)[1]})")
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, aspect=28, pad=0.015, ticks=[-limit, 0, limit])
    bar.ax.set_yticklabels([f"−{limit:.2f}", "0", f"+{limit:.2f}"])
    bar.outline.set_visible(False)
    return figure


@styled
def residual_norms(pieces: Sequence[str], norms: Float[np.ndarray, "points seq"]) -> Figure:
    """The length of each token's vector after the embedding (point 0) and after each block, on a logarithmic scale.

    The first position and the last are drawn in colour and named; the others stay grey.
    """
    values = np.asarray(norms)
    points = np.arange(len(values))
    figure = new_figure(3.8)
    axes = figure.add_subplot()
    axes.plot(points, values[:, 1:-1], color=REMOVED, linewidth=0.8, alpha=0.7)
    axes.plot(points, values[:, 0], color=OTHER, linewidth=2.2, linestyle=(0, (5, 1)))
    axes.plot(points, values[:, -1], color=KEPT, linewidth=2.2)
    _name_line(axes, f"first token, {visible(pieces[0])}", points, values[:, 0], above=True)
    _name_line(axes, f"last token, {visible(pieces[-1])}", points, values[:, -1], above=False)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_xlim(0, len(points) - 1)
    axes.margins(y=0.12)
    axes.grid(axis="y")
    axes.set_xlabel("blocks passed (0: the embedding; grey: all other tokens)")
    axes.set_ylabel("length of the vector")
    return figure


@styled
def attention_pattern(pieces: Sequence[str], pattern: Float[np.ndarray, "seq kv_seq"]) -> Figure:
    """Where each position of one head looks: a row a reader, a column a token that it can read.

    What the causal mask removes, the triangle above the stairs, stays empty.
    """
    weights = np.asarray(pattern)
    size = len(weights)
    figure = new_figure(WIDTH * 0.9)
    axes = figure.add_subplot()
    image = axes.pcolormesh(np.tril(weights), cmap=AMOUNT, vmin=0.0, vmax=1.0)
    steps = np.arange(size + 1)
    axes.stairs(steps[:-1], steps, color=REMOVED, linewidth=0.8, baseline=None)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    _token_ticks(axes, "y", pieces, fontsize=min(TEXT, 330 / size))
    _token_ticks(axes, "x", pieces, fontsize=min(TEXT, 330 / size), rotation=90)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    axes.text(size * 0.97, size * 0.22, "later tokens:\nhidden by the mask", color=FAINT, ha="right", va="center")
    bar = figure.colorbar(image, ax=axes, shrink=0.5, aspect=22, pad=0.02, ticks=[0, 0.5, 1], anchor=(0, 1))
    bar.ax.set_yticklabels(["0", "½", "1"])
    bar.set_label("share of the row's attention", color=FAINT)
    bar.outline.set_visible(False)
    return figure


@styled
def next_token(pieces: Sequence[str], probs: Float[np.ndarray, " candidates"], chosen: int) -> Figure:
    """The likeliest next tokens as bars, the one that was drawn (index `chosen`) marked by colour and by a word."""
    values = np.asarray(probs)
    figure = new_figure(0.75 + ROW * len(values))
    axes = figure.add_subplot()
    colors = [CHOSEN if index == chosen else KEPT for index in range(len(values))]
    axes.barh(np.arange(len(values)) + 0.5, values, height=0.66, color=colors)
    axes.invert_yaxis()
    _token_ticks(axes, "y", pieces)
    for index, value in enumerate(values):
        note = f"{value:.3f}" + ("   ◂ drawn" if index == chosen else "")
        axes.annotate(note, (value, index + 0.5), (5, 0), textcoords="offset points", va="center", color=INK)
    axes.set_xlim(0, min(1.0, float(values.max()) * 1.05))
    axes.set_xlabel("probability of being next")
    axes.spines["left"].set_visible(False)
    return figure


@styled
def number_line(pieces: Sequence[str], probs: Float[np.ndarray, " candidates"], u: Number, chosen: int) -> Figure:
    """The draw: candidates side by side from 0 to 1, each as wide as its probability, and the number that hits one.

    `pieces` and `probs` come in the order of the bins, which is that of the ids, and `probs` adds up to 1. Names that
    don't fit into their bins hang below them, those of the widest and of the chosen one first, `HANGING` at most.
    """
    widths = np.asarray(probs)
    lefts = np.cumsum(widths) - widths
    narrow = [index for index, width in enumerate(widths) if not _fits(visible(pieces[index]), width)]
    named = sorted(narrow, key=lambda index: (index != chosen, -widths[index], index))[:HANGING]
    depths = _hanging_depths(sorted(named), lefts)
    below = max(depths.values(), default=-1) + 1
    figure = new_figure(1.95 + ROW * below)
    axes = figure.add_subplot()
    for index, (left, width) in enumerate(zip(lefts, widths, strict=True)):
        hit = index == chosen
        axes.barh(0, width, left=left, height=1, color=CHOSEN if hit else SOFT, edgecolor="white", linewidth=1.2)
        if index in depths:
            _hang_below(axes, left + width / 2, visible(pieces[index]), depths[index])
        elif index not in narrow:
            _write_in_bar(axes, left + width / 2, 0, visible(pieces[index]), on_dark=hit, side="center")
    _point_down(axes, u, f"u = {u:.3f}")
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.6 - 0.7 * below, 2.0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("cumulative probability, candidates in the order of their ids")
    return figure


@styled
def answer(
    pieces: Sequence[str],
    candidates: Sequence[Sequence[str]],
    probs: Float[np.ndarray, "steps candidates"],
    chosen: Sequence[int],
) -> Figure:
    """The whole answer, read downwards: a row a step, its likeliest candidates side by side, the drawn one in colour.

    Row `step` belongs to the token `pieces[step]`; `candidates[step]` and `probs[step]` list the likeliest tokens and
    their probabilities, largest first, and `chosen[step]` is the index of the drawn one among them. The likeliest of
    the others is named at the end of the row.
    """
    values = np.asarray(probs)
    figure = new_figure(0.95 + 0.38 * len(pieces))
    axes = figure.add_subplot()
    for step, (names, row, drawn) in enumerate(zip(candidates, values, chosen, strict=True)):
        rival = 1 if drawn == 0 else 0
        _answer_row(axes, step, row, drawn)
        label = f"{visible(names[rival])} {row[rival]:.3f}"
        axes.text(1.015, step, label, va="center", color=FAINT, fontsize=SMALL, family=MONOSPACE)
    axes.text(1.015, -0.72, "runner-up", va="center", color=FAINT, fontsize=SMALL)
    axes.set_yticks(
        range(len(pieces)), [visible(piece) for piece in pieces], fontsize=TEXT, color=INK, family=MONOSPACE
    )
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(pieces) - 0.5, -0.95)
    axes.set_xlim(0, 1)
    axes.set_xlabel("probability (hatched: the rest of the vocabulary)")
    axes.spines["left"].set_visible(False)
    return figure


def _answer_row(axes: Axes, step: int, row: Float[np.ndarray, " candidates"], drawn: int) -> None:
    """The candidates of one step side by side, and a hatched bar for all other tokens."""
    lefts = np.cumsum(row) - row
    colors = [CHOSEN if index == drawn else SOFT for index in range(len(row))]
    axes.barh(np.full(len(row), step), row, left=lefts, height=0.7, color=colors, edgecolor="white", linewidth=1.2)
    axes.barh(step, 1 - row.sum(), left=row.sum(), height=0.7, color="none", edgecolor=RULE, hatch="////", linewidth=0)
    label = f"{row[drawn]:.3f}"
    if _fits(label, row[drawn]):
        _write_in_bar(axes, lefts[drawn] + 0.012, step, label, on_dark=True, side="left")


def _write_in_bar(axes: Axes, x: Number, y: Number, label: str, *, on_dark: bool, side: str) -> None:
    """Text inside a bar: white and bold on the colour of the chosen token, else ink."""
    color, weight = ("white", "bold") if on_dark else (INK, "normal")
    axes.text(x, y, label, ha=side, va="center", color=color, weight=weight, family=MONOSPACE)


def _hanging_depths(named: Sequence[int], lefts: Float[np.ndarray, " candidates"]) -> dict[int, int]:
    """How many rows down each name hangs: higher the nearer to an end of the line, so that no line crosses a name."""
    left_half = [index for index in named if lefts[index] < 0.5]
    right_half = [index for index in reversed(named) if lefts[index] >= 0.5]
    return {index: depth for half in (left_half, right_half) for depth, index in enumerate(half)}


def _hang_below(axes: Axes, x: Number, label: str, depth: int) -> None:
    """A name below its bin, `depth` rows down, written away from the nearer end of the line."""
    y = -0.85 - 0.7 * depth
    axes.plot([x, x], [-0.5, y], color=FAINT, linewidth=0.8)
    side, gap = ("right", -4) if x > 0.5 else ("left", 4)
    axes.annotate(label, (x, y), (gap, 0), textcoords="offset points", ha=side, va="center", family=MONOSPACE)


def _point_down(axes: Axes, x: Number, label: str) -> None:
    """An arrow from above onto the bins, with the number that it stands for."""
    side, start = ("left", 0.0) if x < 0.06 else ("right", 1.0) if x > 0.94 else ("center", 0.5)
    arrow = {"arrowstyle": "-|>", "color": INK, "shrinkA": 2, "shrinkB": 0, "linewidth": 1.5, "relpos": (start, 0.0)}
    axes.annotate(label, (x, 0.5), (x, 1.3), ha=side, va="bottom", color=INK, weight="bold", arrowprops=arrow)


def _name_line(
    axes: Axes, label: str, x: Int[np.ndarray, " points"], y: Float[np.ndarray, " points"], *, above: bool
) -> None:
    """Write a line's name at its middle, above or below it, on a halo that keeps grid lines out of the letters."""
    middle = len(x) // 2
    place, align = ((0, 8), "bottom") if above else ((0, -10), "top")
    text = axes.annotate(label, (x[middle], y[middle]), place, textcoords="offset points", ha="center", va=align)
    text.set_path_effects([withStroke(linewidth=3, foreground="white")])


def _token_ticks(axes: Axes, which: str, pieces: Sequence[str], fontsize: Number = TEXT, rotation: Number = 0) -> None:
    """Name the cells along an axis by their tokens, without tick marks."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_ticks(
        np.arange(len(pieces)) + 0.5,
        [visible(piece) for piece in pieces],
        fontsize=fontsize,
        rotation=rotation,
        color=INK,
    )
    for label in axis.get_ticklabels():
        label.set_fontfamily(MONOSPACE)
    axes.tick_params(axis=which, length=0)


def _fits(label: str, width: Number) -> bool:
    """Whether a label fits into a bar whose width is a share of the axes (seven tenths of the figure or more)."""
    return bool((len(label) + 1) * CHARACTER < width * WIDTH * 0.7)
