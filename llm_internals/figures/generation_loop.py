"""The figures of ``07_generation_loop``: which positions a pass computes, and what that costs.

Every function takes numbers and the text of the tokens, calls no stage, and returns a figure of fixed size.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from llm_internals.figures.labels import visible
from llm_internals.figures.style import (
    CHOSEN,
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

WITH, WITHOUT = "with a cache", "without"
BILLION = 1e9
BARS = ((OTHER, "////", "share of the multiplications"), (KEPT, None, "share of the time"))
"""Colour, hatching and name of the two bars of a part."""


@styled
def passes(pieces: Sequence[str], n_prompt: int) -> Figure:
    """The positions that each pass computes, with a cache and without: a row a pass, a column a position.

    The first pass has the prompt, each later one the token that was chosen before; the last piece is chosen and goes
    through no pass.
    """
    rows = len(pieces) - n_prompt
    figure = new_figure(1.75 + 0.3 * rows)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, title, cached in zip(panels, (WITH, WITHOUT), (True, False), strict=True):
        for row in range(rows):
            _draw_pass(axes, row, n_prompt + row, n_prompt + row - 1 if cached and row else 0)
            axes.text(n_prompt + row + 0.12, row + 0.5, visible(pieces[n_prompt + row]), va="center", color=CHOSEN)
            axes.texts[-1].set(family=MONOSPACE, fontsize=SMALL)
        computed = sum(1 if cached and row else n_prompt + row for row in range(rows))
        axes.set_title(f"{title}: {computed} positions computed", loc="left", fontsize=TEXT, color=INK)
        axes.set_xlim(0, len(pieces) + 1.6)
        axes.set_ylim(rows, 0)
        axes.set_xticks(np.arange(len(pieces) - 1) + 0.5, [visible(piece) for piece in pieces[:-1]], rotation=90)
        for label in axes.get_xticklabels():
            label.set(family=MONOSPACE, color=INK)
        axes.set_yticks(np.arange(rows) + 0.5, ["prefill", *(f"step {row}" for row in range(1, rows))], color=INK)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, facecolor=color) for color in (KEPT, SOFT)]
    names = ["computed in this pass", "keys and values read from the cache"]
    figure.legend(handles, names, frameon=False, fontsize=SMALL, loc="outside lower center", ncols=2)
    return figure


def _draw_pass(axes: Axes, row: int, length: int, first_computed: int) -> None:
    """A row of cells up to `length`: those before `first_computed` are read, the others computed."""
    for column in range(length):
        color = SOFT if column < first_computed else KEPT
        axes.add_patch(Rectangle((column + 0.05, row + 0.08), 0.9, 0.84, facecolor=color))


@styled
def rulers(
    seconds: Float[np.ndarray, " passes"], counts: Int[np.ndarray, " passes"], pieces: Sequence[str], n_prompt: int
) -> Figure:
    """The passes of one response laid end to end twice: as long as they took, and as long as their multiplications.

    The first pass is the prefill. Both rulers have the same length, and bands connect what belongs together.
    """
    figure = new_figure(2.9)
    axes = figure.add_subplot()
    edges = [np.concatenate([[0.0], np.cumsum(row) / np.sum(row)]) for row in (np.asarray(seconds), np.asarray(counts))]
    for y, row in zip((1.0, 0.0), edges, strict=True):
        for index, (left, right) in enumerate(pairwise(row)):
            color = KEPT if index == 0 else SOFT
            axes.add_patch(Rectangle((left, y), right - left, 0.34, facecolor=color, edgecolor="white", linewidth=1))
    clock, count = edges
    band = [(clock[0], 1.0), (clock[1], 1.0), (count[1], 0.34), (count[0], 0.34)]
    axes.add_patch(Polygon(band, facecolor=KEPT, alpha=0.15, linewidth=0))
    rest = [(clock[1], 1.0), (1.0, 1.0), (1.0, 0.34), (count[1], 0.34)]
    axes.add_patch(Polygon(rest, facecolor=REMOVED, alpha=0.2, linewidth=0))
    for right, piece in zip(clock[1:], pieces, strict=True):
        axes.annotate(visible(piece), (right, 1.36), (0, 3), textcoords="offset points", rotation=60, ha="left")
        axes.texts[-1].set(family=MONOSPACE, fontsize=SMALL, color=CHOSEN, rotation_mode="anchor")
    total, every = float(np.sum(seconds)), int(np.sum(counts))
    axes.text(clock[1] / 2, 1.17, f"{n_prompt} positions", color="white", ha="center", va="center", fontsize=SMALL)
    axes.text(count[1] / 2, 0.17, f"prefill: {counts[0] / every:.0%}", color="white", ha="center", va="center")
    axes.text((clock[1] + 1) / 2, 1.17, "one position each", color=INK, ha="center", va="center", fontsize=SMALL)
    axes.set_yticks([0.17, 1.17], [f"multiplications\n{every / BILLION:.1f} billion", f"time\n{total:.2f} s"])
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    for label in axes.get_yticklabels():
        label.set(color=INK, fontsize=SMALL)
    axes.set_xlim(0, 1.1)
    axes.set_ylim(-0.02, 2.05)
    return figure


@styled
def growth(
    lengths: Int[np.ndarray, " lengths"],
    counts: Mapping[str, Int[np.ndarray, " lengths"]],
    measured: Int[np.ndarray, " measured"],
    seconds: Mapping[str, Float[np.ndarray, " measured"]],
) -> Figure:
    """One more token after n others, with a cache and without: multiplications at the left, the clock at the right.

    Both axes are logarithmic, so that a straight line that rises one decade a decade is proportional to n.
    """
    figure = new_figure(3.9)
    left, right = figure.subplots(1, 2, sharex=True)
    for (name, values), color, dashes in zip(counts.items(), (KEPT, OTHER), ("-", (0, (5, 1.5))), strict=True):
        left.plot(lengths, np.asarray(values) / BILLION, color=color, linestyle=dashes, linewidth=2)
        left.annotate(name, (lengths[-1], values[-1] / BILLION), (-4, 8), textcoords="offset points", ha="right")
        left.texts[-1].set(color=color)
    for (name, values), color, marker in zip(seconds.items(), (KEPT, OTHER), ("o", "s"), strict=True):
        right.plot(measured, values, color=color, marker=marker, markersize=5, linewidth=1)
        right.annotate(name, (measured[-1], values[-1]), (8, 0), textcoords="offset points", va="center", color=color)
    left.set_ylabel("billion multiplications")
    right.set_ylabel("seconds, measured")
    for axes in (left, right):
        axes.axvspan(measured[0], measured[-1], color=SOFT, alpha=0.3, linewidth=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("positions before the new token")
        axes.xaxis.set_major_formatter(lambda n, _: f"{n:,.0f}")
        axes.yaxis.set_major_formatter(lambda n, _: f"{n:,g}")
        axes.grid()
    left.set_xlim(lengths[0], lengths[-1])
    return figure


@styled
def crossing(
    lengths: Int[np.ndarray, " lengths"],
    constant: Mapping[str, int],
    attention: Int[np.ndarray, " lengths"],
    crosses: float,
) -> Figure:
    """The multiplications of one decode step, stacked: parts that stay the same, and attention, which grows.

    A dashed line stands where attention has become as large as the rest.
    """
    figure = new_figure(3.3)
    axes = figure.add_subplot()
    flat = [np.full(len(lengths), value) / 1e6 for value in constant.values()]
    bottom = float(sum(row[0] for row in flat))
    axes.stackplot(lengths, *flat, np.asarray(attention) / 1e6, colors=[KEPT, SOFT, OTHER], edgecolor="white")
    middle = 0.0
    for (name, value), color in zip(constant.items(), ("white", INK), strict=True):
        axes.text(lengths[-1] * 0.02, middle + value / 2e6, name, va="center", color=color)
        middle += value / 1e6
    axes.text(lengths[-1] * 0.97, bottom * 1.35, "attention: queries with keys,\npatterns with values", ha="right")
    axes.texts[-1].set(va="center", color=INK)
    axes.axvline(crosses, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.annotate(f"as much as the rest\nat {crosses:,.0f} positions", (crosses, bottom * 2.6), (-6, 0))
    axes.texts[-1].set(ha="right", va="center", color=INK)
    axes.texts[-1].set_anncoords("offset points")
    axes.set_xlim(0, lengths[-1])
    axes.set_ylim(0, bottom + float(attention[-1]) / 1e6)
    axes.xaxis.set_major_formatter(lambda n, _: f"{n:,.0f}")
    axes.set_xlabel("positions that the new token looks at")
    axes.set_ylabel("million multiplications a step")
    return figure


@styled
def shares(
    parts: Sequence[str],
    panels: Mapping[str, tuple[Int[np.ndarray, " parts"], Float[np.ndarray, " parts"]]],
) -> Figure:
    """For each part of a step: its share of the multiplications and its share of the time; a panel a context."""
    figure = new_figure(1.3 + 0.5 * len(parts))
    places = np.arange(len(parts))
    for axes, (title, both) in zip(figure.subplots(1, len(panels), sharey=True), panels.items(), strict=True):
        for values, offset, (color, hatch, name) in zip(both, (-0.19, 0.19), BARS, strict=True):
            part = np.asarray(values) / np.sum(values)
            axes.barh(places + offset, part, height=0.36, color=color, hatch=hatch, edgecolor="white", label=name)
            for place, share in zip(places, part, strict=True):
                label = f"{share:.0%}" if share >= 0.005 or not share else "< 1%"
                axes.text(share + 0.015, place + offset, label, va="center", fontsize=SMALL, color=INK)
        axes.set_xlim(0, 0.8)
        axes.set_xticks([0, 0.2, 0.4, 0.6])
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_color(RULE)
        axes.set_title(title, loc="left", fontsize=TEXT, color=INK)
        axes.set_yticks(places, parts, color=INK)
    axes.invert_yaxis()
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, fontsize=SMALL, loc="outside lower center", ncols=2)
    return figure
