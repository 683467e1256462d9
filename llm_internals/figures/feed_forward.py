"""The figures of ``03b_feed_forward``: two forms of the network, its gate, its share of the work, and its neurons.

Every function takes NumPy arrays and names, calls no stage, and returns a figure of fixed size.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from llm_internals.figures.style import (
    CHOSEN,
    FAINT,
    INK,
    KEPT,
    OTHER,
    REMOVED,
    RIGHT,
    SMALL,
    SOFT,
    TEXT,
    new_figure,
    styled,
)

Number = int | float

LINES = ((KEPT, "-"), (OTHER, (0, (5, 1.5))), (INK, (0, (1, 1))), (RIGHT, (0, (6, 1.5, 1, 1.5))))
"""Colour and dashes of the first line of a chart, the second, and so on."""
FILLS = (KEPT, SOFT, OTHER, REMOVED)
HATCHES = ("", "", "////", "")
GAP = 300
"""Between two matrices in the drawing of both forms, in the unit of their sizes."""


@styled
def two_forms(width: int, older: int, gated: int) -> Figure:
    """The matrices of the older form and of SwiGLU, drawn to scale: an area stands for a number of weights.

    `width` is that of the stream, `older` and `gated` are the widths inside the two forms.
    """
    figure = new_figure(3.7)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    _older_form(axes, width, older)
    _gated_form(axes, width, gated, older + width + 3 * GAP)
    axes.set_xlim(-40, older + 2 * width + gated + 4.2 * GAP)
    axes.set_ylim(older + 60, -760)
    return figure


def _older_form(axes: Axes, width: int, inner: int) -> None:
    """Two matrices with an activation between them."""
    axes.text(0, -480, "the older form", fontsize=TEXT, color=INK, weight="bold")
    _matrix(axes, 0, 0, inner, width, "W₁", OTHER)
    _matrix(axes, inner + GAP, 0, width, inner, "W₂", OTHER)
    axes.text(inner + GAP / 2, width / 2, "ReLU", ha="center", va="bottom", rotation=90, color=FAINT, fontsize=SMALL)


def _gated_form(axes: Axes, width: int, inner: int, left: int) -> None:
    """Two matrices side by side, of whose results one gates the other, and a third."""
    axes.text(left, -480, "SwiGLU", fontsize=TEXT, color=INK, weight="bold")
    _matrix(axes, left, 0, inner, width, "gate", KEPT)
    _matrix(axes, left, width + 330, inner, width, "up", KEPT)
    _matrix(axes, left + inner + GAP, 0, width, inner, "down", KEPT)
    place = (left + inner + GAP / 2, width / 2)
    axes.text(*place, "SiLU", ha="center", va="center", rotation=90, color=FAINT, fontsize=SMALL)
    axes.text(place[0], width + 330 + width / 2, "×", ha="center", va="center", color=FAINT, fontsize=TEXT)


def _matrix(axes: Axes, left: Number, top: Number, columns: int, rows: int, name: str, color: str) -> None:
    """A rectangle as wide and as high as the matrix, with its name inside and its sizes at two edges."""
    axes.add_patch(Rectangle((left, top), columns, rows, facecolor=color, alpha=0.22, edgecolor="none"))
    axes.add_patch(Rectangle((left, top), columns, rows, fill=False, edgecolor=color, linewidth=1.4))
    axes.text(left + columns / 2, top + rows / 2, name, ha="center", va="center", color=INK)
    axes.text(left + columns / 2, top - 40, f"{columns:,}", ha="center", va="bottom", color=FAINT, fontsize=SMALL)
    axes.text(left - 30, top + rows / 2, f"{rows:,}", ha="right", va="center", color=FAINT, fontsize=SMALL, rotation=90)


@styled
def gate(
    inputs: Float[np.ndarray, " points"],
    curves: Mapping[str, Float[np.ndarray, " points"]],
    opened: Mapping[Number, Number],
) -> Figure:
    """Left: what becomes of the gate's number, in a line for each activation function.

    Right: what one neuron hands on as its other number varies; a line for each gate, whose slope `opened` gives.
    """
    figure = new_figure(3.5)
    left, right = figure.subplots(1, 2)
    for (name, values), (color, dashes) in zip(curves.items(), LINES, strict=False):
        left.plot(inputs, values, color=color, linestyle=dashes, linewidth=2, label=name)
    left.set_xlabel("number from the gate matrix")
    left.set_ylabel("how far the gate is open")
    left.legend(frameon=False, fontsize=SMALL, loc="upper left")
    ups = np.array([-3.0, 3.0])
    for (number, slope), (color, dashes) in zip(opened.items(), LINES, strict=False):
        right.plot(ups, slope * ups, color=color, linestyle=dashes, linewidth=2)
        label = f"gate {number:g}".replace("-", "−")
        right.annotate(label, (3, slope * 3), (5, 0), textcoords="offset points", va="center", color=color)
    right.set_xlim(-3, 4.9)
    right.set_xticks([-3, 0, 3])
    right.set_xlabel("number from the up matrix")
    right.set_ylabel("what the neuron hands on")
    for axes in (left, right):
        axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
        axes.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
    return figure


@styled
def work(contexts: Int[np.ndarray, " points"], counts: Mapping[str, Float[np.ndarray, " points"]]) -> Figure:
    """The share of each part in the multiplications of one decode step, against the length of the context."""
    values = np.array(list(counts.values()), dtype=np.float64)
    edges = np.vstack([np.zeros(len(contexts)), np.cumsum(values / values.sum(axis=0), axis=0)])
    figure = new_figure(3.5)
    axes = figure.add_subplot()
    for index, (name, fill, hatch) in enumerate(zip(counts, FILLS, HATCHES, strict=True)):
        low, high = edges[index], edges[index + 1]
        axes.fill_between(contexts, low, high, facecolor=fill, hatch=hatch, edgecolor="white", linewidth=1)
        _name_band(axes, name, float(low[0]), float(high[0]), on_dark=fill == KEPT, hatched=bool(hatch))
    axes.set_xscale("log", base=2)
    axes.set_xlim(contexts[0], contexts[-1])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("tokens in the context")
    axes.set_ylabel("share of the multiplications")
    return figure


def _name_band(axes: Axes, name: str, low: Number, high: Number, *, on_dark: bool, hatched: bool) -> None:
    """Write a name into its band: at the left, or in the upper right corner if the band is narrow there."""
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2} if hatched else None
    look = {"color": "white" if on_dark else INK, "transform": axes.get_yaxis_transform(), "bbox": box}
    if high - low > 0.05:
        axes.text(0.035, (low + high) / 2, name, ha="left", va="center", **look)
    else:
        axes.text(0.975, 0.96, name.replace(", ", ",\n"), ha="right", va="top", **look)


@styled
def activity(closed: Float[np.ndarray, " blocks"], needed: Float[np.ndarray, " blocks"], inner: int) -> Figure:
    """By block: the share of gates that are closed, and how many neurons make up nine tenths of what is handed on."""
    blocks = np.arange(len(closed))
    figure = new_figure(3.9)
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.bar(blocks, closed, color=SOFT, edgecolor=KEPT, linewidth=0.8)
    upper.set_ylim(0, 1)
    upper.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    upper.set_ylabel("gates below 0")
    lower.bar(blocks, needed, color=KEPT)
    lower.set_ylabel(f"neurons of {inner:,}\nfor nine tenths")
    lower.set_xlabel("block")
    lower.set_xlim(-0.7, len(blocks) - 0.3)
    for axes in (upper, lower):
        axes.grid(axis="y")
    return figure


@styled
def silenced(bits: Mapping[str, Float[np.ndarray, " blocks"]], intact: Number, blind: Number) -> Figure:
    """What a text costs when one part of one block is silenced, in a line of marks for each part."""
    figure = new_figure(3.7)
    axes = figure.add_subplot()
    looks = ((OTHER, "s"), (KEPT, "o"))
    for (name, values), (color, marker) in zip(bits.items(), looks, strict=True):
        blocks = np.arange(len(values))
        axes.vlines(blocks, intact, values, color=color, linewidth=1, alpha=0.5)
        axes.plot(blocks, values, marker, color=color, markersize=5.5, label=name)
    for place, label, side, gap in ((intact, "nothing silenced", "top", -4), (blind, "blind guessing", "bottom", 3)):
        axes.axhline(place, color=INK, linewidth=1.2, linestyle=(0, (3, 2)), zorder=0)
        axes.annotate(label, (len(blocks) - 0.5, place), (0, gap), textcoords="offset points", ha="right", va=side)
    axes.set_xlim(-0.7, len(blocks) - 0.3)
    axes.set_ylim(0, 1.12 * max(blind, max(float(np.max(values)) for values in bits.values())))
    axes.set_xlabel("block")
    axes.set_ylabel("bits a token for the text")
    axes.legend(frameon=False, fontsize=SMALL, loc="center right", title="silenced", alignment="left")
    return figure


@styled
def pointed(peaks: Float[np.ndarray, "blocks neurons"], chance: Number) -> Figure:
    """How far a neuron's favourite token stands out of the vocabulary, a dot a neuron, a dash at each block's median.

    A line stands at what a random vector reaches.
    """
    values = np.asarray(peaks)
    blocks = np.repeat(np.arange(len(values)), values.shape[1])
    figure = new_figure(3.5)
    axes = figure.add_subplot()
    axes.scatter(blocks, values.ravel(), s=12, color=KEPT, alpha=0.55, linewidth=0, label="a neuron")
    medians = np.median(values, axis=1)
    axes.plot(np.arange(len(values)), medians, "_", color=CHOSEN, markersize=13, markeredgewidth=2.4, label="median")
    axes.axhline(chance, color=INK, linewidth=1.2, linestyle=(0, (3, 2)), label="a random vector")
    axes.set_xlim(-0.7, len(values) - 0.3)
    axes.set_ylim(0, None)
    axes.grid(axis="y")
    axes.set_xlabel("block")
    axes.set_ylabel("highest score / spread")
    axes.legend(frameon=False, fontsize=SMALL, loc="upper left")
    return figure
