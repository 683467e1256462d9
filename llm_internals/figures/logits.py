"""The figures of ``04_logits``: where scores come from, how they lie, and what the layers say before the last one.

Every function takes NumPy arrays and the text of the tokens, calls no stage, and returns a figure of fixed size.
"""

from collections.abc import Mapping, Sequence

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
    SMALL,
    SOFT,
    TEXT,
    new_figure,
    styled,
)

ROW = 0.235
"""Inches that one layer of the lens needs."""
LINES = ((KEPT, "-"), (OTHER, (0, (5, 1.5))), (INK, (0, (1, 1))))
"""Colour and dashes of the first, second and third line of a chart."""
ARROW = {"arrowstyle": "-|>", "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}


@styled
def shadows(pieces: Sequence[str], vectors: Float[np.ndarray, "tokens 2"], hidden: Float[np.ndarray, " 2"]) -> Figure:
    """Token vectors in the plane and their shadows on the direction of the hidden state.

    A score is the length of the hidden state times the length of the shadow, negative if the shadow falls behind 0.
    """
    values, length = np.asarray(vectors), float(np.linalg.norm(hidden))
    direction = np.asarray(hidden) / length
    figure = new_figure(4.0)
    axes = figure.add_subplot()
    limit = 1.25 * float(np.abs(values).max())
    axes.axline((0, 0), tuple(direction), color=SOFT, linewidth=5, zorder=0)
    for piece, vector in zip(pieces, values, strict=True):
        shadow = (vector @ direction) * direction
        axes.plot(*zip(vector, shadow, strict=True), color=FAINT, linewidth=1, linestyle=(0, (2, 2)))
        axes.plot(*shadow, "o", color=KEPT, markersize=6, zorder=3)
        axes.annotate("", vector, (0, 0), arrowprops=ARROW | {"color": INK})
        label = f"{visible(piece)}  score {vector @ hidden:.0f}".replace("-", "−")
        _name_tip(axes, vector, label, above=bool(direction[0] * vector[1] > direction[1] * vector[0]))
    axes.annotate("", direction * limit * 1.45, direction * limit * 1.25, arrowprops=ARROW | {"color": KEPT})
    end = tuple(direction * limit * 1.45)
    axes.annotate(
        "direction of the hidden state", end, (0, 9), textcoords="offset points", ha="right", va="bottom", color=KEPT
    )
    axes.set_aspect("equal")
    axes.set_xlim(-1.6 * limit, 1.6 * limit)
    axes.set_ylim(-1.05 * limit, 0.75 * limit)
    axes.axhline(0, color=RULE, linewidth=0.8, zorder=-1)
    axes.axvline(0, color=RULE, linewidth=0.8, zorder=-1)
    axes.set_xlabel("first number of a token's vector")
    axes.set_ylabel("second number")
    return figure


@styled
def score_histograms(
    titles: Sequence[str],
    scores: Float[np.ndarray, "prompts vocab_size"],
    favourites: Sequence[str],
    sums: Float[np.ndarray, " prompts"],
) -> Figure:
    """All scores of each prompt as a histogram with logarithmic counts, a panel a prompt.

    The highest score is named by its token, and a dashed line stands at the log-sum-exp.
    """
    values = np.asarray(scores)
    edges = np.arange(np.floor(values.min()), np.ceil(values.max()) + 1)
    figure = new_figure(1.0 + 1.65 * len(titles))
    panels = figure.subplots(len(titles), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, title, row, favourite, total in zip(panels, titles, values, favourites, sums, strict=True):
        axes.hist(row, bins=edges, color=SOFT, edgecolor="white", linewidth=0.6)
        axes.axvline(total, color=OTHER, linewidth=1.6, linestyle=(0, (4, 2)))
        axes.annotate("", (row.max(), 1.1), (row.max(), 20), arrowprops=ARROW | {"color": KEPT})
        axes.text(row.max() - 0.3, 24, visible(favourite), ha="right", color=KEPT, family=MONOSPACE)
        axes.text(total + 0.3, 900, "log-sum-exp", color=OTHER, ha="left", va="bottom", fontsize=SMALL)
        axes.set_title(title, loc="left", fontsize=TEXT, color=INK)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}" if count >= 1 else "")
        axes.set_ylabel("tokens")
    panels[0].set_ylim(0.7, 2e4)
    panels[0].set_xlim(edges[0], edges[-1] + 6.5)
    panels[-1].set_xlabel("score (logit)")
    return figure


@styled
def surprisals(
    pieces: Sequence[str], bits: Float[np.ndarray, " tokens"], expected: Float[np.ndarray, " tokens"]
) -> Figure:
    """What each token of a text costs in bits, as bars, and what the model expected to pay there, as marks."""
    places = np.arange(len(pieces))
    figure = new_figure(3.6)
    axes = figure.add_subplot()
    axes.bar(places, bits, width=0.72, color=KEPT, label="surprisal of the token that came")
    axes.plot(places, expected, "_", color=CHOSEN, markersize=13, markeredgewidth=2.2, label="entropy: expected before")
    axes.set_xticks(places, [visible(piece) for piece in pieces], rotation=90, fontsize=SMALL, color=INK)
    for label in axes.get_xticklabels():
        label.set_fontfamily(MONOSPACE)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.7, len(pieces) - 0.3)
    axes.set_ylabel("bits")
    axes.grid(axis="y")
    axes.legend(frameon=False, fontsize=SMALL, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    return figure


@styled
def lens(points: Sequence[str], pieces: Sequence[Sequence[str]], probs: Float[np.ndarray, "points tokens"]) -> Figure:
    """The likeliest tokens at each point of the stream, the first point on top; a cell is as dark as it is probable."""
    values = np.asarray(probs)
    figure = new_figure(0.75 + ROW * len(points))
    axes = figure.add_subplot()
    image = axes.pcolormesh(values, cmap=AMOUNT, vmin=0, vmax=1, edgecolors="white", linewidth=1)
    for (row, column), p in np.ndenumerate(values):
        color = "white" if p > 0.55 else INK
        label = f"{visible(pieces[row][column])}"
        axes.text(column + 0.04, row + 0.52, label, va="center", color=color, fontsize=SMALL, family=MONOSPACE)
        if p >= 0.01:
            axes.text(column + 0.96, row + 0.52, f"{p:.2f}", va="center", ha="right", color=color, fontsize=SMALL)
    axes.invert_yaxis()
    axes.set_yticks(np.arange(len(points)) + 0.5, points, color=INK)
    axes.set_xticks(np.arange(values.shape[1]) + 0.5, _ordinals(values.shape[1]), color=FAINT)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("read after")
    bar = figure.colorbar(image, ax=axes, shrink=0.3, aspect=16, pad=0.02, ticks=[0, 0.5, 1], anchor=(0, 1))
    bar.ax.set_yticklabels(["0", "½", "1"])
    bar.set_label("probability", color=FAINT)
    bar.outline.set_visible(False)
    return figure


@styled
def ranks(places: Mapping[str, Int[np.ndarray, " points"]], vocab_size: int) -> Figure:
    """The place of each token in the ranking after each block, the first place on top; point 0 is the embedding."""
    figure = new_figure(3.4)
    axes = figure.add_subplot()
    for (piece, ranking), (color, dashes) in zip(places.items(), LINES, strict=False):
        axes.plot(ranking, color=color, linestyle=dashes, linewidth=2, label=visible(piece))
    axes.axhline(vocab_size / 2, color=REMOVED, linewidth=1)
    axes.annotate("the middle of the vocabulary", (0, vocab_size / 2), (2, -4), textcoords="offset points", va="top")
    axes.texts[-1].set(color=FAINT, fontsize=SMALL)
    axes.set_yscale("log")
    axes.set_ylim(vocab_size * 2.5, 0.7)
    axes.yaxis.set_major_formatter(lambda place, _: f"{place:,.0f}")
    axes.set_xlim(0, max(len(ranking) for ranking in places.values()) - 1)
    axes.grid(axis="y")
    axes.set_xlabel("blocks passed (0: the embedding)")
    axes.set_ylabel("place in the ranking")
    axes.legend(frameon=False, fontsize=TEXT, loc="center left", prop={"family": MONOSPACE})
    return figure


@styled
def contributions(shares: Mapping[str, Float[np.ndarray, "parts blocks"]], parts: Sequence[str]) -> Figure:
    """What each part of each block adds to the score of each token, a panel a token; bars of a block stand together."""
    figure = new_figure(0.8 + 1.75 * len(shares))
    panels = figure.subplots(len(shares), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (piece, values) in zip(panels, shares.items(), strict=True):
        blocks = np.arange(values.shape[1])
        for offset, name, row, color in zip((-0.2, 0.2), parts, values, (OTHER, KEPT), strict=True):
            hatch = "////" if color == OTHER else None
            axes.bar(blocks + offset, row, width=0.4, color=color, label=name, hatch=hatch, edgecolor="white")
        axes.axhline(0, color=FAINT, linewidth=0.8)
        axes.set_title(visible(piece), loc="left", fontsize=TEXT, color=INK, family=MONOSPACE)
        axes.set_ylabel("added to the score")
        axes.grid(axis="y")
    panels[0].legend(frameon=False, fontsize=SMALL, loc="upper left")
    panels[-1].set_xticks(blocks[::5])
    every = np.concatenate(list(shares.values()))
    panels[0].set_yticks(np.arange(2 * np.floor(every.min() / 2), every.max(), 2))
    panels[-1].set_xlim(-0.7, len(blocks) - 0.3)
    panels[-1].set_xlabel("block")
    return figure


def _ordinals(n: int) -> list[str]:
    """Names of the first places of a ranking."""
    return ["likeliest", "second", "third", "fourth", "fifth"][:n]


def _name_tip(axes: Axes, tip: Float[np.ndarray, " 2"], label: str, *, above: bool) -> None:
    """Write a vector's name at its tip, above or below it, on a halo that keeps lines out of the letters."""
    side = "left" if tip[0] >= 0 else "right"
    place = (4 if tip[0] >= 0 else -4, 11 if above else -11)
    text = axes.annotate(label, tuple(tip), place, textcoords="offset points", ha=side, va="center", family=MONOSPACE)
    text.set_path_effects([withStroke(linewidth=3, foreground="white")])
