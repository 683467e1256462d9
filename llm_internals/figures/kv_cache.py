"""The figures of ``03c_kv_cache``: what a new token reads, what waits for what, how the cache fills and what it costs.

Every function takes NumPy arrays and text, calls no stage, and returns a figure of fixed size.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from llm_internals.figures.labels import visible
from llm_internals.figures.style import (
    CHOSEN,
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
    new_figure,
    styled,
)

Number = int | float

GAP = 0.35
"""Space between the attention pattern and the vectors beside it, in cells."""
RADIUS = 0.27
"""Of a vector in the picture of what waits for what, in columns."""
STATES = ListedColormap(["#FFFFFF", SOFT, KEPT])
"""Free, held, written in this pass."""
LINES = ((OTHER, (0, (5, 1.5))), (INK, (0, (1, 1))), (KEPT, "-"), (FAINT, (0, (4, 1, 1, 1))))
"""Colour and dashes of the lines that show memory."""


@styled
def new_row(pieces: Sequence[str]) -> Figure:
    """The attention pattern of a head when one more token arrives: its row is all that there is to compute.

    Blue is computed now, pale blue is read from the cache, and grey was needed once.
    """
    n = len(pieces)
    figure = new_figure(0.62 * (n + 2.2))
    axes = figure.add_subplot()
    for row, piece in enumerate(pieces):
        new = row == n - 1
        axes.text(-1.25 - GAP, row + 0.5, visible(piece), ha="right", va="center", family=MONOSPACE)
        _cell(axes, -1 - GAP, row, "q", KEPT if new else None)
        for column in range(row + 1):
            axes.add_patch(_square(column, row, KEPT if new else RULE))
        for below, letter in enumerate("kv"):
            _cell(axes, row, n + below + GAP, letter, KEPT if new else SOFT)
    held = Rectangle((-0.06, n + GAP - 0.06), n - 0.88, 2.12, facecolor="none", edgecolor=INK, linewidth=1.2)
    axes.add_patch(held)
    notes = ((n / 2 - 0.5, "computed when these\ntokens were new", FAINT), (n - 0.5, "the new token's row", KEPT))
    for y, note, color in (*notes, (n + 1 + GAP, "its key and value", KEPT)):
        axes.text(n + 0.35, y, note, va="center", color=color)
    axes.text(-0.35, n + 1 + GAP, "the cache", ha="right", va="center", color=INK)
    axes.set_xlim(-4.6, n + 4.4)
    axes.set_ylim(n + 2 + GAP + 0.1, -0.1)
    axes.set_aspect("equal")
    axes.axis("off")
    return figure


@styled
def dependencies(pieces: Sequence[str], prompt: int, steps: Int[np.ndarray, "blocks seq"]) -> Figure:
    """What waits for what: a column a position, a row a block, and in each vector the step that computes it.

    Every vector needs those of its own and of earlier positions in the row below. The token under a column of the
    answer is read off the top of the column before it.
    """
    blocks, seq = steps.shape
    figure = new_figure(0.95 * (blocks + 1.3))
    axes = figure.add_subplot()
    for row in range(blocks - 1):
        for column in range(seq):
            axes.plot([range(column + 1), [column] * (column + 1)], [[row], [row + 1]], color=RULE, lw=1, zorder=0)
    for column, piece in enumerate(pieces):
        answered = column >= prompt
        color = CHOSEN if answered else INK
        axes.plot((column, column), (-0.72, 0), color=RULE, linewidth=1, zorder=0)
        axes.text(column, -0.97, visible(piece), ha="center", va="center", family=MONOSPACE, color=color)
        for row in range(blocks):
            _vector(axes, column, row, int(steps[row, column]), SOFT if answered else KEPT)
        if answered:
            _drawn(axes, column - 1, blocks - 1)
    for first, last, title in ((0, prompt, "prompt: all at once"), (prompt, seq, "answer: one after the other")):
        axes.plot((first - 0.35, last - 0.65), (blocks - 0.48,) * 2, color=FAINT, linewidth=1)
        axes.text((first + last - 1) / 2, blocks - 0.33, title, ha="center", color=INK)
    axes.set_yticks(range(blocks), [f"block {row}" for row in range(blocks)], color=INK)
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    axes.set_xlim(-0.6, seq - 0.4)
    axes.set_ylim(-1.25, blocks)
    return figure


@styled
def filling(titles: Sequence[str], written: Bool[np.ndarray, "moments layers capacity"]) -> Figure:
    """Which rows of the cache hold something at several moments: a panel a moment, a cell a layer and position.

    Dark cells were written since the moment before, pale ones earlier, white ones are free.
    """
    moments, layers, capacity = written.shape
    before = np.zeros((layers, capacity), dtype=bool)
    figure = new_figure(0.7 + 1.3 * moments)
    panels = figure.subplots(moments, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, title, now in zip(panels, titles, written, strict=True):
        state = np.where(now & ~before, 2, np.where(now, 1, 0))
        axes.pcolormesh(state, cmap=STATES, vmin=0, vmax=2, edgecolors=RULE, linewidth=0.25)
        axes.set_title(title, loc="left", fontsize=TEXT, color=INK)
        axes.set_ylabel("layer")
        axes.set_yticks([0.5, layers - 0.5], ["0", str(layers - 1)])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        before = now
    ticks = np.arange(0, capacity, 8)
    panels[-1].set_xticks(ticks + 0.5, [str(tick) for tick in ticks])
    panels[-1].set_xlabel("position")
    boxes = [Rectangle((0, 0), 1, 1, facecolor=STATES(state), edgecolor=FAINT, linewidth=0.6) for state in (2, 1, 0)]
    names = ["new since the panel above", "held before", "free"]
    figure.legend(boxes, names, loc="outside lower center", ncols=3, frameon=False)
    return figure


@styled
def memory(lengths: Int[np.ndarray, " lengths"], lines: Mapping[str, Float[np.ndarray, " lengths"]]) -> Figure:
    """Bytes over the length of the context, both on logarithmic scales: steepness is the power of the growth."""
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    for (name, values), (color, dashes) in zip(lines.items(), LINES, strict=False):
        axes.plot(lengths, values, color=color, linestyle=dashes, linewidth=2)
        axes.annotate(
            name,
            (lengths[-1], values[-1]),
            (6, 0),
            textcoords="offset points",
            va="center",
            color=color,
            fontsize=SMALL,
            annotation_clip=False,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(lengths[0], lengths[-1] * 30)
    axes.spines["bottom"].set_bounds(lengths[0], lengths[-1])
    ticks = [*(10**power for power in range(5) if lengths[0] <= 10**power < lengths[-1]), int(lengths[-1])]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    units = [(1e3, "1 kB"), (1e6, "1 MB"), (1e9, "1 GB"), (1e12, "1 TB")]
    lowest, highest = axes.get_ylim()
    shown = [(size, name) for size, name in units if lowest <= size <= highest]
    axes.set_yticks([size for size, _ in shown], [name for _, name in shown])
    axes.set_xlabel("tokens held", loc="left")
    axes.set_ylabel("memory")
    axes.hlines([size for size, _ in shown], lengths[0], lengths[-1], color=RULE, linewidth=0.8, zorder=0)
    return figure


@styled
def worth(pieces: Sequence[str], divergences: Float[np.ndarray, " kv_seq"], floor: Number = 1e-4) -> Figure:
    """How far the next token's distribution moves when one position is hidden from attention: a bar a position.

    Bars begin at `floor`, since the scale is logarithmic; what lies below has none.
    """
    places = np.arange(len(pieces))
    values = np.maximum(divergences, floor)
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    largest = int(values.argmax())
    colors = [CHOSEN if place == largest else KEPT for place in places]
    axes.bar(places, values - floor, bottom=floor, width=0.74, color=colors)
    axes.set_yscale("log")
    axes.set_ylim(floor, 10 ** np.ceil(np.log10(values.max())))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xticks(places, [visible(piece) for piece in pieces], rotation=90, fontsize=SMALL, color=INK)
    for label in axes.get_xticklabels():
        label.set_fontfamily(MONOSPACE)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.7, len(pieces) - 0.3)
    axes.set_xlabel("position that is hidden")
    axes.set_ylabel("KL divergence, nats")
    axes.grid(axis="y")
    return figure


@styled
def masks(titles: Sequence[str], allowed: Sequence[Bool[np.ndarray, "seq kv_seq"]]) -> Figure:
    """Masks side by side: a row a query, a column a key; blue where the query may look."""
    rows = max(len(mask) for mask in allowed)
    figure = new_figure(1.0 + 0.36 * rows)
    panels = figure.subplots(1, len(allowed), squeeze=False)[0]
    for axes, title, mask in zip(panels, titles, allowed, strict=True):
        seq, kv_seq = mask.shape
        axes.pcolormesh(mask, cmap=ListedColormap(["#FFFFFF", KEPT]), vmin=0, vmax=1, edgecolors=RULE, linewidth=1)
        axes.set_title(title, loc="left", fontsize=TEXT, color=INK)
        axes.set_xticks(np.arange(kv_seq) + 0.5, [str(column) for column in range(kv_seq)])
        axes.set_yticks(np.arange(seq) + 0.5, [str(kv_seq - seq + row) for row in range(seq)])
        axes.set_aspect("equal")
        axes.set_ylim(rows, 0)
        axes.set_xlabel("position of the key")
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    panels[0].set_ylabel("position of\nthe query")
    return figure


def _square(x: Number, y: Number, color: str) -> Rectangle:
    """A cell of the pattern."""
    return Rectangle((x + 0.06, y + 0.06), 0.88, 0.88, facecolor=color, edgecolor="none")


def _cell(axes: Axes, x: Number, y: Number, letter: str, color: str | None) -> None:
    """A vector as a small box with its letter; without a colour it is one that nobody needs any more."""
    box = _square(x, y, color or "none")
    if color is None:
        box.set(edgecolor=REMOVED, linewidth=1, linestyle=(0, (2, 1.5)))
    axes.add_patch(box)
    ink = {KEPT: "white", SOFT: INK}.get(color or "", FAINT)
    axes.text(x + 0.5, y + 0.53, letter, ha="center", va="center", color=ink, style="italic")


def _vector(axes: Axes, x: Number, y: Number, step: int, color: str) -> None:
    """A vector with the number of the step that computes it."""
    axes.add_patch(Circle((x, y), RADIUS, facecolor=color, edgecolor="white", linewidth=1.5))
    axes.text(x, y - 0.01, str(step), ha="center", va="center", color="white" if color == KEPT else INK)


def _drawn(axes: Axes, column: int, top: int) -> None:
    """The way from the top of a column, down between the columns, to the token under the next one."""
    axes.plot((column + RADIUS, column + 0.5, column + 0.5), (top, top, -0.5), color=CHOSEN, linewidth=1.6, zorder=2)
    ends = (column + 0.5, -0.5), (column + 0.9, -0.8)
    axes.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=12, linewidth=1.6, color=CHOSEN, shrinkA=0))
