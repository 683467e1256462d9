"""The figures of ``02_embedding_and_rope``: tokens that are alike, long vectors, turning pairs, and scores by distance.

Every function takes NumPy arrays and the text of the tokens, calls no stage, and returns a figure of fixed size.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Circle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter

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
    SIGNED,
    SMALL,
    SOFT,
    TEXT,
    new_figure,
    styled,
)

CURVES = ((KEPT, "-"), (CHOSEN, (0, (5, 1.5))), (OTHER, (0, (1, 1.2))), (INK, (0, (4, 1, 1, 1))))
"""Colour and dashes of the curves of a chart."""
HAND = {"arrowstyle": "-|>", "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 11}
CELL = 0.195
"""Inches of a cell with a token's name beside it."""
HALO = [withStroke(linewidth=3, foreground="white")]
BINS = 96
"""Into how many parts the vocabulary is cut for the spread of lengths: 512 tokens each in ours."""
THOUSANDS = FuncFormatter(lambda number, _: f"{number:,.0f}")


@styled
def similarities(groups: Mapping[str, Sequence[str]], cosines: Float[np.ndarray, "tokens tokens"]) -> Figure:
    """The cosine of every token with every other, with rules between the groups, whose names stand at the right."""
    pieces = [visible(piece) for members in groups.values() for piece in members]
    size = len(pieces)
    figure = new_figure(max(3.2, 0.45 + CELL * size))
    axes = figure.add_subplot()
    image = axes.pcolormesh(np.asarray(cosines), cmap=SIGNED, vmin=-1, vmax=1, edgecolors="white", linewidth=0.4)
    ends = np.cumsum([len(members) for members in groups.values()])
    for name, end, count in zip(groups, ends, map(len, groups.values()), strict=True):
        axes.axhline(end, color=INK, linewidth=1)
        axes.axvline(end, color=INK, linewidth=1)
        axes.text(size * 1.02, end - count / 2, name, va="center", color=INK, fontsize=SMALL)
    axes.set_xlim(0, size)
    axes.set_ylim(size, 0)
    axes.set_aspect("equal")
    axes.set_xticks(np.arange(size) + 0.5, pieces, rotation=90, family=MONOSPACE, fontsize=SMALL, color=INK)
    axes.set_yticks(np.arange(size) + 0.5, pieces, family=MONOSPACE, fontsize=SMALL, color=INK)
    axes.tick_params(length=0)
    bar = figure.colorbar(image, ax=axes, shrink=0.5, aspect=22, pad=0.02, ticks=[-1, -0.5, 0, 0.5, 1])
    bar.set_label("cosine similarity", color=FAINT)
    bar.outline.set_visible(False)
    return figure


@styled
def vector_lengths(lengths: Float[np.ndarray, " vocab_size"], named: Mapping[int, str]) -> Figure:
    """How long the vectors of the vocabulary are, by id: the spread of each part, and some tokens by name."""
    values = np.asarray(lengths)
    parts = np.array_split(np.arange(len(values)), min(BINS, len(values)))
    middles = [part.mean() for part in parts]
    levels = np.array([np.quantile(values[part], [0.01, 0.25, 0.5, 0.75, 0.99]) for part in parts]).T
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    axes.fill_between(middles, levels[0], levels[4], color=RULE, linewidth=0, label="98 of 100 tokens")
    axes.fill_between(middles, levels[1], levels[3], color=SOFT, linewidth=0, label="the middle half")
    axes.plot(middles, levels[2], color=KEPT, linewidth=2, label="median")
    for id, piece in named.items():
        axes.plot(id, values[id], "o", color=CHOSEN, markersize=5)
        label = axes.annotate(visible(piece), (id, values[id]), (7, 0), textcoords="offset points", va="center")
        label.set(fontsize=SMALL, family=MONOSPACE, path_effects=HALO)
    axes.set_xlim(0, len(values))
    axes.set_ylim(0, 1.08 * values.max())
    axes.xaxis.set_major_formatter(THOUSANDS)
    axes.set_xlabel("token id (low ids: frequent pieces)")
    axes.set_ylabel("length of the vector")
    axes.grid(axis="y")
    axes.legend(frameon=False, fontsize=SMALL, loc="lower right", ncols=3)
    return figure


@styled
def same_angle(
    query: Float[np.ndarray, " 2"], key: Float[np.ndarray, " 2"], step: float, places: Sequence[tuple[int, int]]
) -> Figure:
    """A query and a key turned by their positions, a panel for each pair of positions (query's, key's).

    Pale arrows are the vectors before they were turned. The angle between the turned ones is drawn as an arc.
    """
    figure = new_figure(2.75)
    panels = figure.subplots(1, len(places), squeeze=False)[0]
    for axes, (m, n) in zip(panels, places, strict=True):
        _plane(axes)
        ends = []
        for vector, position, color, name in ((query, m, KEPT, "q"), (key, n, CHOSEN, "k")):
            turned = _turned(vector, position * step)
            axes.annotate("", vector, (0, 0), arrowprops=HAND | {"color": REMOVED, "linewidth": 1.0})
            axes.annotate("", turned, (0, 0), arrowprops=HAND | {"color": color})
            axes.text(*(1.17 * turned), name, color=color, ha="center", va="center", path_effects=HALO)
            ends.append(math.degrees(math.atan2(turned[1], turned[0])))
        start, end = ends if (ends[1] - ends[0]) % 360 < 180 else ends[::-1]
        axes.add_patch(Arc((0, 0), 0.7, 0.7, theta1=start, theta2=end, color=INK, linewidth=1.4))
        axes.set_title(f"q at {m}, k at {n}", fontsize=TEXT, color=INK)
        score = float(_turned(query, m * step) @ _turned(key, n * step))
        axes.set_xlabel(f"score {score:.2f}".replace("-", "−"), color=INK)
    return figure


@styled
def clocks(frequencies: Float[np.ndarray, " pairs"], names: Sequence[str], positions: Sequence[int]) -> Figure:
    """One clock for each pair (row) at each position (column): how far the pair has turned."""
    figure = new_figure(0.55 + 0.72 * len(names))
    grid = figure.subplots(len(names), len(positions), squeeze=False)
    for row, (frequency, name) in enumerate(zip(frequencies, names, strict=True)):
        for axes, position in zip(grid[row], positions, strict=True):
            _plane(axes)
            start, hand = np.array([1.0, 0.0]), _turned(np.array([1.0, 0.0]), position * frequency)
            axes.plot(*zip((0, 0), start, strict=True), color=REMOVED, linewidth=1)
            axes.annotate("", hand, (0, 0), arrowprops=HAND | {"color": KEPT})
        grid[row, 0].set_ylabel(name, rotation=0, ha="right", va="center", color=INK, fontsize=SMALL)
    for axes, position in zip(grid[0], positions, strict=True):
        axes.set_title(f"{position:,}", fontsize=SMALL, color=INK)
    figure.suptitle("position", fontsize=SMALL, color=FAINT)
    return figure


@styled
def pairings(size: int) -> Figure:
    """Which of a head's numbers turn together, in the two layouts: neighbours, and the two halves."""
    half = size // 2
    layouts = {
        "half-split: i with i + d/2": [(i, i + half) for i in range(half)],
        "interleaved: 2i with 2i + 1": [(2 * i, 2 * i + 1) for i in range(half)],
    }
    figure = new_figure(3.3)
    panels = figure.subplots(2, 1, gridspec_kw={"height_ratios": [1.9, 1]})
    for axes, (name, pairs) in zip(panels, layouts.items(), strict=True):
        for number, (left, right) in enumerate(pairs):
            color, dashes = CURVES[number % len(CURVES)]
            reach = right - left
            axes.add_patch(
                Arc(
                    ((left + right) / 2, 0.42),
                    reach,
                    0.5 + 0.42 * reach,
                    theta2=180,
                    color=color,
                    linestyle=dashes,
                    lw=2,
                )
            )
            for place in (left, right):
                axes.text(place, 0, str(place), ha="center", va="center", color="white", fontsize=TEXT, zorder=4)
                axes.plot(place, 0, "s", color=color, markersize=23)
        axes.set_title(name, loc="left", fontsize=TEXT, color=INK)
        axes.set_xlim(-0.7, size - 0.3)
        axes.set_ylim(-0.5, 0.85 + 0.21 * (pairs[0][1] - pairs[0][0]))
        axes.axis("off")
    return figure


@styled
def turn_lengths(periods: Float[np.ndarray, " pairs"], context: int) -> Figure:
    """After how many tokens each pair has turned once, on a logarithmic scale, and where the context ends."""
    pairs = np.arange(len(periods))
    done = np.asarray(periods) <= context
    figure = new_figure(3.6)
    axes = figure.add_subplot()
    axes.plot(pairs[done], periods[done], "o", color=KEPT, markersize=6, label="turns at least once in the context")
    axes.plot(pairs[~done], periods[~done], "s", color=OTHER, markersize=6, label="doesn't complete one turn")
    axes.axhline(context, color=INK, linewidth=1, linestyle=(0, (4, 2)))
    axes.annotate(f"context: {context:,} tokens", (0, context), (0, 4), textcoords="offset points", fontsize=SMALL)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(THOUSANDS)
    axes.set_xlabel("pair")
    axes.set_ylabel("tokens for one turn")
    axes.grid(axis="y")
    axes.legend(frameon=False, fontsize=SMALL, loc="lower right")
    return figure


@styled
def distance_scores(curves: Mapping[str, Float[np.ndarray, " distances"]]) -> Figure:
    """The score of a fixed query and a fixed key of several heads against the distance, each below its own best."""
    figure = new_figure(3.8)
    axes = figure.add_subplot()
    for (name, values), (color, dashes) in zip(curves.items(), CURVES, strict=False):
        axes.plot(np.asarray(values) - np.max(values), color=color, linestyle=dashes, linewidth=2, label=name)
    axes.set_xlim(0, max(len(values) for values in curves.values()) - 1)
    axes.set_xlabel("distance between query and key, in tokens")
    axes.set_ylabel("score, below the best")
    axes.grid(axis="y")
    axes.legend(frameon=False, fontsize=SMALL, loc="upper center", bbox_to_anchor=(0.5, 1.17), ncols=2)
    return figure


@styled
def score_maps(maps: Mapping[str, Float[np.ndarray, "queries keys"]], start: int) -> Figure:
    """Scores of one query and one key at all pairs of positions from `start` on, a panel for each way of placing them.

    Every panel shows its own scores about their mean, in its own unit: their standard deviation.
    """
    figure = new_figure(3.9)
    panels = figure.subplots(1, len(maps), squeeze=False, sharey=True)[0]
    for axes, (name, values) in zip(panels, maps.items(), strict=True):
        shown = (np.asarray(values) - np.mean(values)) / np.std(values)
        edges = np.arange(start, start + len(shown) + 1) - 0.5
        image = axes.pcolormesh(edges, edges, shown, cmap=SIGNED, vmin=-2.5, vmax=2.5, rasterized=True)
        axes.set_aspect("equal")
        axes.set_title(name, fontsize=TEXT, color=INK)
        axes.set_xlabel("position of the key")
    panels[0].invert_yaxis()  # shared: one call turns all panels
    panels[0].set_ylabel("position of the query")
    bar = figure.colorbar(image, ax=panels, shrink=0.75, aspect=20, pad=0.02, ticks=[-2, 0, 2])
    bar.set_label("score, in standard deviations", color=FAINT)
    bar.outline.set_visible(False)
    return figure


def _turned(vector: Float[np.ndarray, " 2"], angle: float) -> Float[np.ndarray, " 2"]:
    """A vector of the plane, turned counter-clockwise."""
    (a, b), cos, sin = vector, math.cos(angle), math.sin(angle)
    return np.array([a * cos - b * sin, b * cos + a * sin])


def _plane(axes: Axes) -> None:
    """A unit circle without ticks or frame, to draw hands in."""
    axes.add_patch(Circle((0, 0), 1, fill=False, color=RULE, linewidth=1))
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
