"""The figures of ``09_rlhf``: how training climbs, what a nat buys, what else moved, and how a preference is learnt.

Every function takes NumPy arrays and text, calls no stage, and returns a figure of fixed size. The picture of the tilt
itself is `interventions.effects`: one distribution, before and after.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

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
    new_figure,
    styled,
)

Number = int | float

ROW = 0.3
"""Inches that one row of a list needs."""
LINES = ((KEPT, "-", "o"), (OTHER, (0, (5, 1.5)), "s"), (CHOSEN, (0, (1, 1)), "D"), (INK, (0, (4, 1, 1, 1)), "^"))
"""Colour, dashes and marker of the first, second, third and fourth line of a chart."""
ARROW = {"arrowstyle": "-|>", "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 11}


@styled
def climb(
    objective: Float[np.ndarray, " steps"],
    optimum: Number,
    probs: Mapping[str, Float[np.ndarray, " steps"]],
    best: Mapping[str, Number],
) -> Figure:
    """Training step by step: the objective on the left, the probabilities of some tokens on the right.

    A dashed line stands where the closed form says that each of them should end.
    """
    steps = np.arange(len(objective))
    figure = new_figure(3.1)
    left, right = figure.subplots(1, 2)
    left.plot(steps, objective, color=KEPT, linewidth=2)
    left.axhline(optimum, color=INK, linewidth=1, linestyle=(0, (4, 2)))
    left.annotate("β ln Z", (steps[-1], optimum), (0, 3), textcoords="offset points", ha="right", va="bottom")
    left.set_ylim(min(0.9 * objective.min(), optimum), optimum + 0.15 * (optimum - objective.min()))
    left.set_ylabel("objective J")
    for (piece, values), (color, dashes, _) in zip(probs.items(), LINES, strict=False):
        right.plot(steps, values, color=color, linestyle=dashes, linewidth=2)
        right.axhline(best[piece], color=INK, linewidth=1, linestyle=(0, (4, 2)))
        middle = len(steps) // 2
        name = right.annotate(visible(piece), (middle, values[middle]), (0, -5), textcoords="offset points")
        name.set(color=color, family=MONOSPACE, ha="center", va="top" if values[middle] > 0.5 else "bottom")
        if values[middle] <= 0.5:
            name.set_position((0, 5))
    right.set_ylim(0, 1.04)
    right.set_ylabel("probability")
    for axes in (left, right):
        axes.set_xlim(0, steps[-1])
        axes.set_xlabel("training step")
        axes.grid(axis="y")
    return figure


@styled
def frontier(
    edge: Float[np.ndarray, "points 2"],
    paths: Mapping[str, Float[np.ndarray, "steps 2"]],
    best: Mapping[str, Sequence[Number]],
) -> Figure:
    """What distance buys: KL divergence to the right, expected reward upwards.

    ``edge`` is the line of all optima, from no change to the largest; nothing lies above it. Each path is one training,
    step by step, and the ring of the same name its optimum.
    """
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    axes.plot(*edge.T, color=INK, linewidth=1.4)
    axes.fill_between(*edge.T, edge[:, 1].max() * 1.2, color=RULE, alpha=0.45, linewidth=0)
    axes.text(edge[-1, 0] * 0.3, edge[-1, 1], "out of reach", color=FAINT, fontsize=SMALL)
    for (name, points), (color, dashes, marker) in zip(paths.items(), LINES, strict=False):
        axes.plot(*points.T, color=color, linestyle=dashes, linewidth=1.2, marker=marker, markersize=4, label=name)
        ring = {"markersize": 12, "markerfacecolor": "none", "markeredgecolor": color, "markeredgewidth": 1.8}
        axes.plot(*best[name], "o", clip_on=False, zorder=5, **ring)
    axes.set_xlim(0, edge[-1, 0])
    axes.set_ylim(edge[0, 1] - 0.05, edge[:, 1].max() * 1.07)
    axes.set_xlabel("KL divergence from the model before training, in nats")
    axes.set_ylabel("expected reward")
    axes.legend(frameon=False, fontsize=SMALL, loc="lower right", handlelength=3.2)
    axes.grid(axis="y")
    return figure


@styled
def shifts(
    prompts: Sequence[str],
    pieces: Sequence[str],
    before: Float[np.ndarray, " rows"],
    after: Float[np.ndarray, " rows"],
) -> Figure:
    """Where the probability of one token after each prompt went, a row each: from the ring to the tip of the arrow."""
    figure = new_figure(0.6 + 1.2 * ROW * len(prompts))
    axes = figure.add_subplot()
    for row, (piece, was, now) in enumerate(zip(pieces, before, after, strict=True)):
        color = KEPT if now >= was else CHOSEN
        axes.plot([0, 1], [row, row], color=RULE, linewidth=0.8, zorder=0)
        if abs(now - was) > 0.012:
            axes.annotate("", (now, row), (was, row), arrowprops=ARROW | {"color": color})
        axes.plot(was, row, "o", color="white", markeredgecolor=INK, markersize=6, zorder=3)
        label = axes.annotate(visible(piece), (max(was, now), row), (7, 0), textcoords="offset points", va="center")
        label.set(family=MONOSPACE, fontsize=SMALL, color=INK)
        label.set_path_effects([withStroke(linewidth=3, foreground="white")])
    _rows(axes, prompts)
    axes.set_xlim(-0.02, 1.25)
    axes.set_xticks(np.linspace(0, 1, 5))
    axes.spines["bottom"].set_bounds(0, 1)
    axes.set_xlabel("probability of the token: ring before, arrow after training", loc="left")
    return figure


@styled
def divergences(prompts: Sequence[str], values: Mapping[str, Float[np.ndarray, " prompts"]], floor: Number) -> Figure:
    """How far the distribution after each prompt moved, a row a prompt, a mark a model, on a logarithmic scale.

    What is below ``floor`` is drawn at it.
    """
    figure = new_figure(1.0 + ROW * len(prompts))
    axes = figure.add_subplot()
    rows = np.arange(len(prompts))
    spread = np.linspace(-0.16, 0.16, len(values))
    for (name, moved), (color, _, marker), shift in zip(values.items(), LINES, spread, strict=False):
        axes.plot(np.maximum(moved, floor), rows + shift, marker, color=color, markersize=6, label=name)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda nats, _: f"≤ {nats:g}" if np.isclose(nats, floor) else f"{nats:g}")
    axes.xaxis.set_minor_formatter(lambda nats, _: "")
    axes.set_xlim(floor * 0.8, 2 * max(float(moved.max()) for moved in values.values()))
    _rows(axes, prompts)
    axes.hlines(rows, *axes.get_xlim(), color=RULE, linewidth=0.8, zorder=0)
    axes.set_xlabel("KL divergence from the model before training, in nats", loc="left")
    axes.legend(frameon=False, fontsize=SMALL, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=len(values))
    return figure


@styled
def preferences(
    names: Sequence[str], chosen: Float[np.ndarray, "steps pairs"], rejected: Float[np.ndarray, "steps pairs"]
) -> Figure:
    """Both answers of each pair along training, a panel a pair: the chosen one blue, the rejected one grey, dashed."""
    steps = np.arange(len(chosen))
    figure = new_figure(2.9)
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name, preferred, other in zip(panels, names, chosen.T, rejected.T, strict=True):
        axes.plot(steps, preferred, color=KEPT, linewidth=2.2, label="chosen")
        axes.plot(steps, other, color=FAINT, linewidth=2, linestyle=(0, (4, 2)), label="rejected")
        axes.fill_between(steps, preferred, other, where=preferred >= other, color=REMOVED, alpha=0.3, linewidth=0)
        axes.set_title(name, fontsize=SMALL, color=INK, loc="left")
        axes.set_xlim(0, steps[-1])
        axes.set_xlabel("training step")
        axes.grid(axis="y")
    panels[0].set_ylabel("log-probability, in nats")
    panels[0].legend(frameon=False, fontsize=SMALL)
    return figure


def _rows(axes: Axes, prompts: Sequence[str]) -> None:
    """Name the rows of a list by their prompts, the first at the top."""
    axes.set_yticks(range(len(prompts)), prompts, fontsize=SMALL, color=INK)
    axes.set_ylim(len(prompts) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
