"""The figures of ``03a_attention``: one look taken apart, what a change reaches, and all heads of the model at once.

Every function takes NumPy arrays and the text of the tokens, calls no stage, and returns a figure of fixed size.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text

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
    new_figure,
    styled,
)

Number = int | float
Head = tuple[int, int]

SEEN = LinearSegmentedColormap.from_list("seen", ["#E8EDF1", "#8CC4E4", KEPT, "#00314D"])
"""As `AMOUNT`, but zero is a pale grey, so that a map's triangle stands out from the page."""
BAND = 15
"""Blocks that stand side by side in the atlas."""
ARROW = {"arrowstyle": "-|>", "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}


@styled
def one_look(
    query: Float[np.ndarray, " 2"],
    keys: Float[np.ndarray, "tokens 2"],
    values: Float[np.ndarray, "tokens 2"],
    weights: Float[np.ndarray, " tokens"],
) -> Figure:
    """Left: the query and the keys as arrows. Right: the values as points, and their weighted mean among them.

    A line from a value to the mean is as thick as its weight.
    """
    figure = new_figure(3.5)
    compare, mix = figure.subplots(1, 2)
    for number, key in enumerate(keys, start=1):
        compare.annotate("", tuple(key), (0, 0), arrowprops=ARROW | {"color": INK})
        _beside(compare, key, f"key {number}: {key @ query:.0f}", INK)
    compare.annotate("", tuple(query), (0, 0), arrowprops=ARROW | {"color": KEPT})
    _beside(compare, query, "query", KEPT)
    compare.set_title("compare: query · key", loc="left", fontsize=TEXT, color=INK)
    mean = weights @ values
    for number, (value, weight) in enumerate(zip(values, weights, strict=True), start=1):
        mix.plot(*zip(value, mean, strict=True), color=SOFT, linewidth=1 + 9 * weight, solid_capstyle="butt", zorder=1)
        mix.plot(*value, "o", color=INK, markersize=6)
        _beside(mix, value, f"value {number}: {weight:.2f}", INK)
    mix.plot(*mean, "D", color=KEPT, markersize=9, zorder=3)
    _beside(mix, mean, "output", KEPT, below=True)
    mix.set_title("mix: weight × value", loc="left", fontsize=TEXT, color=INK)
    for axes in (compare, mix):
        axes.locator_params(nbins=5, integer=True)
    for axes, points in ((compare, np.vstack([keys, query, [[0, 0]]])), (mix, np.asarray(values))):
        _frame(axes, points)
    return figure


@styled
def steps(
    pieces: Sequence[str],
    products: Float[np.ndarray, "seq kv_seq"],
    scores: Float[np.ndarray, "seq kv_seq"],
    pattern: Float[np.ndarray, "seq kv_seq"],
) -> Figure:
    """One head's matrices side by side: products of queries and keys, scaled and masked scores, weights.

    A score of minus infinity stays empty, and so does its weight.
    """
    figure = new_figure(3.55)
    panels = figure.subplots(1, 3, sharey=True)
    hidden = np.isneginf(scores)
    limit = float(np.abs(products).max())
    stages = (
        ("query · key", products, SIGNED, (-limit, limit), 0),
        ("scaled, masked", np.where(hidden, np.nan, scores), SIGNED, (-limit / 8, limit / 8), 1),
        ("weights", np.where(hidden, np.nan, pattern), AMOUNT, (0, 1), 2),
    )
    for axes, (title, matrix, colors, (low, high), decimals) in zip(panels, stages, strict=True):
        image = _numbered(axes, matrix, colors, Normalize(low, high), decimals)
        axes.set_xticks(np.arange(len(pieces)) + 0.5, [visible(piece) for piece in pieces], rotation=90)
        _monospaced(axes.get_xticklabels())
        axes.set_title(title, loc="left", fontsize=TEXT, color=INK)
        bar = figure.colorbar(image, ax=axes, location="bottom", aspect=22, shrink=0.9, pad=0.03, ticks=[low, high])
        bar.ax.set_xticklabels([f"{end:.0f}".replace("-", "−") for end in (low, high)])
        bar.outline.set_visible(False)
        bar.set_label("share of the row" if low == 0 else "score", color=FAINT, labelpad=-8, fontsize=SMALL)
    panels[0].invert_yaxis()
    panels[0].set_yticks(np.arange(len(pieces)) + 0.5, [visible(piece) for piece in pieces])
    panels[0].set_ylabel("the token that looks")
    _monospaced(panels[0].get_yticklabels())
    return figure


@styled
def reach(pieces: Sequence[str], changes: Mapping[str, Float[np.ndarray, "points seq"]]) -> Figure:
    """How much each vector of the stream changes, after each block, a panel a change; what is exactly 0 stays empty.

    The first row of an array is the embedding, and stands at the bottom. The scale of colours is logarithmic.
    """
    figure = new_figure(0.9 + 2.15 * len(changes))
    panels = figure.subplots(len(changes), 1, sharex=True, squeeze=False)[:, 0]
    norm = LogNorm(1e-3, 1.0, clip=True)
    for axes, (title, values) in zip(panels, changes.items(), strict=True):
        shown = np.ma.masked_equal(np.asarray(values), 0)
        image = axes.pcolormesh(shown, cmap=SEEN, norm=norm, edgecolors="white", linewidth=0.3)
        axes.set_title(title, loc="left", fontsize=TEXT, color=INK)
        axes.set_yticks(np.arange(0, len(values), 10) + 0.5, [str(point) for point in range(0, len(values), 10)])
        axes.set_ylabel("blocks passed")
        axes.tick_params(length=0)
        axes.spines[:].set(visible=True, color=RULE)
    panels[-1].set_xticks(np.arange(len(pieces)) + 0.5, [visible(piece) for piece in pieces], rotation=90)
    panels[-1].tick_params(axis="x", labelsize=SMALL, labelcolor=INK)
    _monospaced(panels[-1].get_xticklabels())
    bar = figure.colorbar(image, ax=panels, shrink=0.6, aspect=26, pad=0.02, ticks=[0.001, 0.01, 0.1, 1])
    bar.ax.set_yticklabels(["0.001", "0.01", "0.1", "1"])
    bar.ax.minorticks_off()
    bar.set_label("change, as a share of the vector's length", color=FAINT)
    bar.outline.set_visible(False)
    return figure


@styled
def atlas(patterns: Float[np.ndarray, "layers heads seq seq"], marked: Mapping[Head, str]) -> Figure:
    """Every head's pattern as a small triangle: a column a block, a row a head, `BAND` blocks to a band.

    A head in `marked` (block, head) has its letter in the empty half of its map.
    """
    layers, heads, size, _ = patterns.shape
    bands = -(-layers // BAND)
    figure = new_figure(0.85 + bands * (heads * 0.44 + 0.35))
    norm = PowerNorm(0.6, 0, 1)
    for band, axes in enumerate(figure.subplots(bands, 1, squeeze=False)[:, 0]):
        first = band * BAND
        shown = range(first, min(first + BAND, layers))
        image = axes.imshow(
            _sheet(patterns[shown.start : shown.stop]), cmap=SEEN, norm=norm, interpolation="none", aspect="auto"
        )
        cell = size + _gap(size)
        middles = np.arange(BAND) * cell + (size - 1) / 2
        axes.set_xlim(-1, BAND * cell)
        axes.set_xticks(middles[: len(shown)], [str(layer) for layer in shown])
        axes.set_yticks(middles[:heads] if heads <= BAND else [], [str(head) for head in range(heads)])
        axes.xaxis.tick_top()
        axes.tick_params(length=0, labelcolor=INK)
        axes.spines[:].set_visible(False)
        axes.set_ylabel("head")
        for (layer, head), letter in marked.items():
            if layer in shown:
                place = ((layer - first) * cell + size * 0.73, head * cell + size * 0.26)
                axes.text(*place, letter, ha="center", va="center", fontsize=SMALL, color=CHOSEN, weight="bold")
    figure.axes[0].set_title("block", fontsize=TEXT, color=FAINT)
    bar = figure.colorbar(image, ax=figure.axes, location="bottom", shrink=0.5, aspect=40, pad=0.01)
    bar.set_ticks([0, 0.1, 0.5, 1], labels=["0", "0.1", "0.5", "1"])
    bar.set_label("share of the row's attention", color=FAINT)
    bar.outline.set_visible(False)
    return figure


@styled
def head_scores(scores: Mapping[str, Float[np.ndarray, "layers heads"]]) -> Figure:
    """A number from 0 to 1 for each head, a panel a kind of score; the highest of each panel is ringed."""
    figure = new_figure(0.6 + 1.85 * len(scores))
    panels = figure.subplots(len(scores), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, values) in zip(panels, scores.items(), strict=True):
        image = axes.pcolormesh(np.asarray(values).T, cmap=AMOUNT, vmin=0, vmax=1, edgecolors="#F0F2F4", linewidth=0.5)
        layer, head = np.unravel_index(int(np.argmax(values)), np.shape(values))
        axes.plot(layer + 0.5, head + 0.5, "o", markersize=13, fillstyle="none", color=CHOSEN, markeredgewidth=1.8)
        axes.invert_yaxis()
        axes.set_yticks(np.arange(0, np.shape(values)[1], 2) + 0.5, [str(n) for n in range(0, np.shape(values)[1], 2)])
        axes.set_title(title, loc="left", fontsize=TEXT, color=INK)
        axes.set_ylabel("head")
        axes.tick_params(length=0)
        axes.spines[:].set(visible=True, color=RULE)
    layers = len(next(iter(scores.values())))
    panels[-1].set_xticks(np.arange(0, layers, 2) + 0.5, [str(layer) for layer in range(0, layers, 2)])
    panels[-1].set_xlabel("block")
    bar = figure.colorbar(image, ax=panels, shrink=0.5, aspect=26, pad=0.02, ticks=[0, 0.5, 1])
    bar.ax.set_yticklabels(["0", "½", "1"])
    bar.set_label("mean share of attention", color=FAINT)
    bar.outline.set_visible(False)
    return figure


@styled
def ablation(
    counts: Sequence[int],
    chosen: Float[np.ndarray, " counts"],
    random: Float[np.ndarray, "draws counts"],
    ceiling: Number,
    name: str,
) -> Figure:
    """The loss after removing 0, 1, 2 ... heads: those of one kind as a line, random draws as marks.

    `ceiling` is the loss of a reader who can't use the repetition at all.
    """
    figure = new_figure(3.3)
    axes = figure.add_subplot()
    places = np.arange(len(counts))
    axes.axhline(ceiling, color=REMOVED, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.annotate(
        "the first half, in which nothing repeats", (0, ceiling), (0, -5), textcoords="offset points", va="top"
    )
    axes.texts[-1].set(color=FAINT, fontsize=SMALL)
    for row in random:
        axes.plot(places, row, "x", color=OTHER, markersize=7, markeredgewidth=1.6)
    axes.plot(places, chosen, "o-", color=KEPT, linewidth=2, markersize=6)
    axes.text(places[0], chosen[len(chosen) // 2] * 1.06, name, color=KEPT, va="bottom")
    last = float(np.min(random[:, -1]))
    axes.annotate(
        "as many heads, drawn at random", (places[-1], last), (0, -12), textcoords="offset points", ha="right", va="top"
    )
    axes.texts[-1].set_color("#9A4B79")
    axes.set_xticks(places, [str(count) for count in counts])
    axes.set_ylim(0, ceiling * 1.08)
    axes.grid(axis="y")
    axes.set_xlabel("heads removed")
    axes.set_ylabel("loss on the second half, nats")
    return figure


def _numbered(
    axes: Axes, matrix: Float[np.ndarray, "seq kv_seq"], colors: Colormap, norm: Normalize, decimals: int
) -> QuadMesh:
    """A heat map with its numbers in the cells; what is no number stays empty."""
    image = axes.pcolormesh(np.ma.masked_invalid(matrix), cmap=colors, norm=norm, edgecolors="white", linewidth=1)
    axes.set_aspect("equal")
    axes.tick_params(length=0, labelcolor=INK)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    for (row, column), number in np.ndenumerate(matrix):
        if np.isfinite(number):
            strength = abs(2 * norm(number) - 1) if norm.vmin < 0 else norm(number)
            color = "white" if strength > 0.42 else INK
            label = f"{round(float(number), decimals) + 0.0:.{decimals}f}".replace("-", "−")
            axes.text(column + 0.5, row + 0.5, label, ha="center", va="center", color=color, fontsize=SMALL)
    return image


def _sheet(patterns: Float[np.ndarray, "layers heads seq seq"]) -> np.ma.MaskedArray:
    """All maps of a band in one array: heads down, blocks across; gaps and upper halves are masked."""
    layers, heads, size, _ = patterns.shape
    cell = size + _gap(size)
    sheet = np.full((heads * cell, layers * cell), np.nan)
    lower = np.where(np.tri(size, dtype=bool), patterns, np.nan)
    for layer in range(layers):
        for head in range(heads):
            sheet[head * cell : head * cell + size, layer * cell : layer * cell + size] = lower[layer, head]
    return np.ma.masked_invalid(sheet)


def _gap(size: int) -> int:
    """Rows and columns between two maps."""
    return max(1, size // 8)


def _beside(axes: Axes, point: Float[np.ndarray, " 2"], label: str, color: str, *, below: bool = False) -> None:
    """Write a name above a point, or below it, on a halo; what lies on the horizontal axis has its name below."""
    down = below or point[1] == 0
    place, side = ((0, -8), "top") if down else ((0, 7), "bottom")
    text = axes.annotate(label, tuple(point), place, textcoords="offset points", ha="center", va=side, color=color)
    text.set_path_effects([withStroke(linewidth=3, foreground="white")])


def _frame(axes: Axes, points: Float[np.ndarray, "points 2"]) -> None:
    """Limits with room for names around the points, and the two axes as hairlines."""
    low, high = points.min(axis=0), points.max(axis=0)
    room = high - low
    axes.set_xlim(low[0] - 0.3 * room[0], high[0] + 0.25 * room[0])
    axes.set_ylim(low[1] - 0.3 * room[1], high[1] + 0.3 * room[1])
    axes.axhline(0, color=RULE, linewidth=0.8, zorder=-1)
    axes.axvline(0, color=RULE, linewidth=0.8, zorder=-1)
    axes.set_xlabel("first number")
    axes.set_ylabel("second number")


def _monospaced(labels: Sequence[Text]) -> None:
    """Set tick labels that name tokens in the font of tokens."""
    for label in labels:
        label.set_fontfamily(MONOSPACE)
