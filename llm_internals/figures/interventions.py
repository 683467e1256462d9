"""The figures of ``08_interventions``: what a knob does, how a loop feeds itself, four orders, the search for texts.

Every function takes NumPy arrays and text, calls no stage, and returns a figure of fixed size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
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
    SOFT,
    new_figure,
    styled,
)

Number = int | float

ROW = 0.25
"""Inches that one row of a list needs."""
DASHES = ((0, (5, 1.5)), (0, (1, 1.2)), (0, (4, 1, 1, 1)))
"""How the first, second and third line beside a solid one are dashed."""
SPREAD = 0.18
"""How far dots of one row may lie above and below its middle, so that they don't hide each other."""
FULL = 0.9
"""Length of the bar that stands for the whole vocabulary, in columns."""
BOX = (0.52, 0.78)
"""Width and height of a node of the search tree, in columns and rows."""
ROOT = -0.42
"""Where the search tree begins, in columns."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A token of a search tree: its text, its place in the level before (None for the first), and how likely it is.

    ``p`` is its probability after its parent, ``total`` that of the whole text up to it; ``kept`` says whether it is in
    the beam, ``greedy`` whether greedy decoding goes through it.
    """

    text: str
    parent: int | None
    p: Number
    total: Number
    kept: bool
    greedy: bool


@styled
def effects(
    pieces: Sequence[str], before: Float[np.ndarray, " tokens"], after: Mapping[str, Float[np.ndarray, " tokens"]]
) -> Figure:
    """What each of several interventions makes of one distribution: a panel each, a row a token.

    The outline is the distribution before, the bar the one after; a token that is ruled out says so.
    """
    columns = 3
    lines = -(-len(after) // columns)
    figure = new_figure(lines * (0.5 + ROW * len(pieces)))
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axes, (title, values) in zip(grid.flat, after.items(), strict=False):
        rows = np.arange(len(pieces))
        axes.barh(rows, values, height=0.66, color=KEPT)
        axes.barh(rows, before, height=0.66, color="none", edgecolor=INK, linewidth=1, linestyle=(0, (3, 1.5)))
        for row, (was, value) in enumerate(zip(before, values, strict=True)):
            label = f"{value:.2f}" if value > 0 else "ruled out"
            axes.annotate(label, (max(was, value), row), (4, 0), textcoords="offset points", va="center")
        axes.set_title(title, fontsize=SMALL, color=INK, loc="left")
        axes.set_xlim(0, 1.3)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.set_yticks(rows, [visible(piece) for piece in pieces], family=MONOSPACE, fontsize=SMALL, color=INK)
        axes.tick_params(axis="y", length=0)
    grid[0, 0].set_ylim(len(pieces) - 0.4, -0.6)
    return figure


@styled
def loop_leads(
    leads: Float[np.ndarray, "rounds tokens"], penalties: Mapping[str, Float[np.ndarray, " rounds"]]
) -> Figure:
    """How far the next token of a loop is ahead of its runner-up, round by round, and what penalties take off.

    A grey line a token of the loop, a blue one for the smallest lead of each round: where a penalty lies above it, the
    loop breaks. The first round is number 1, in which no token of the loop has been written yet.
    """
    rounds = np.arange(1, len(leads) + 1)
    figure = new_figure(4.5)
    axes = figure.add_subplot()
    axes.plot(rounds, leads, color=REMOVED, linewidth=1)
    smallest = leads.min(axis=1)
    axes.plot(rounds, smallest, color=KEPT, linewidth=2.4, marker="o", markersize=5)
    ends = {"smallest lead": smallest[-1]}
    for (name, values), color, dashes in zip(penalties.items(), (CHOSEN, OTHER, INK), DASHES, strict=False):
        axes.plot(rounds, values, color=color, linewidth=2, linestyle=dashes)
        ends[name] = values[-1]
    axes.set_xticks(rounds)
    axes.set_xlim(1, rounds[-1] * 1.34)
    axes.set_ylim(0, np.ceil(leads.max()))
    _name_ends(axes, len(leads), ends)
    axes.spines["bottom"].set_bounds(1, rounds[-1])
    axes.set_xlabel("time around the loop", loc="left")
    axes.set_ylabel("lead over the runner-up, in logits")
    axes.grid(axis="y")
    return figure


@styled
def funnels(
    engines: Sequence[str],
    steps: Sequence[Sequence[str]],
    left: Int[np.ndarray, "engines steps"],
    vocab_size: int,
) -> Figure:
    """The same settings in several orders: a row an engine, from left to right its steps and what each of them leaves.

    The bars are as long as the logarithm of the number of tokens that are left, the longest being the vocabulary.
    """
    counts = np.asarray(left)
    columns = counts.shape[1]
    figure = new_figure(0.35 + 0.72 * len(engines))
    axes = figure.add_subplot()
    for row, names in enumerate(steps):
        for column, (name, count) in enumerate(zip(names, counts[row], strict=True)):
            before = vocab_size if column == 0 else counts[row, column - 1]
            length = FULL * np.log(count) / np.log(vocab_size)
            last = column == columns - 1
            axes.barh(row, FULL, left=column, height=0.4, color=RULE, alpha=0.5)
            axes.barh(row, length, left=column, height=0.4, color=KEPT if last else SOFT)
            axes.text(column, row - 0.28, name, va="bottom", fontsize=SMALL, color=INK if count < before else FAINT)
            place = length + 0.03 if length < FULL / 2 else 0.03
            axes.text(
                column + place, row + 0.01, f"{count:,}", va="center", color=INK, weight="bold" if last else "normal"
            )
    axes.set_yticks(range(len(engines)), engines, color=INK)
    axes.set_ylim(len(engines) - 0.65, -0.75)
    axes.set_xlim(0, columns)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    return figure


@styled
def beam_tree(levels: Sequence[Sequence[Node]]) -> Figure:
    """A search tree from left to right: what the beam keeps (blue), drops (grey), and where greedy goes (purple).

    The number on a line is the probability of the token after its parent, the one in a box that of the text up to it.
    """
    height = max(len(level) for level in levels)
    middle = (height - 1) / 2
    figure = new_figure(0.3 + 0.62 * height)
    axes = figure.add_subplot()
    places = [np.arange(len(level)) + middle - (len(level) - 1) / 2 for level in levels]
    for column, level in enumerate(levels):
        for y, node in zip(places[column], level, strict=True):
            parent = middle if node.parent is None else places[column - 1][node.parent]
            out = column - 1 + BOX[0] if column else ROOT
            _branch(axes, (out, parent), (column, y), node)
            _box(axes, column, y, node)
    axes.plot(ROOT, middle, "o", color=INK, markersize=7)
    axes.set_xlim(ROOT - 0.05, len(levels) - 1 + BOX[0] + 0.03)
    axes.set_ylim(height - 0.5, -0.5)
    axes.axis("off")
    return figure


@styled
def likelihoods(rows: Mapping[str, Float[np.ndarray, " texts"]], mark: Number) -> Figure:
    """Where texts lie by their log-probability: a row a way of choosing, a dot a text, a line at `mark` through all."""
    figure = new_figure(0.75 + 0.42 * len(rows))
    axes = figure.add_subplot()
    axes.axvline(mark, color=OTHER, linewidth=1.5, linestyle=DASHES[0])
    for row, values in enumerate(rows.values()):
        shifts = np.linspace(-SPREAD, SPREAD, len(values)) if len(values) > 1 else np.zeros(1)
        axes.plot(np.sort(values), row + shifts, "o", color=KEPT, markersize=6, alpha=0.85, markeredgecolor="white")
    axes.set_yticks(range(len(rows)), rows, color=INK)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_xlabel("log-probability of the whole text, in nats (right: likelier)")
    return figure


def _name_ends(axes: Axes, x: Number, ends: Mapping[str, Number]) -> None:
    """Write the names of lines behind their last points, in their order and no nearer than the letters are high."""
    gap = 0.048 * axes.get_ylim()[1]
    above = np.inf
    for name, y in sorted(ends.items(), key=lambda end: -end[1]):
        above = min(y, above - gap)
        axes.annotate(name, (x, above), (8, 0), textcoords="offset points", va="center")


def _branch(axes: Axes, start: tuple[Number, Number], end: tuple[Number, Number], node: Node) -> None:
    """The line to a node, with the node's probability on it."""
    color, width, dashes = (KEPT, 2.2, "-") if node.kept else (REMOVED, 1.2, DASHES[0])
    line = zip(start, end, strict=True)
    axes.plot(*line, color=OTHER if node.greedy else color, linewidth=width, linestyle=dashes, zorder=1)
    middle = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]))
    _halo(axes.text(*middle, f"{node.p:g}", ha="center", va="center", fontsize=SMALL, color=INK))


def _box(axes: Axes, x: Number, y: Number, node: Node) -> None:
    """A node: its text and the probability of the text so far, framed by what becomes of it."""
    edge, ink = (KEPT, INK) if node.kept else (OTHER, INK) if node.greedy else (REMOVED, FAINT)
    frame = Rectangle((x, y - BOX[1] / 2), *BOX, facecolor=SOFT if node.kept else "none", edgecolor=edge, linewidth=1.5)
    axes.add_patch(frame)
    middle = x + BOX[0] / 2
    weight = "bold" if node.kept or node.greedy else "normal"
    axes.text(middle, y - 0.17, node.text, ha="center", va="center", family=MONOSPACE, color=ink, weight=weight)
    axes.text(middle, y + 0.19, f"{node.total:.4g}", ha="center", va="center", fontsize=SMALL, color=ink)


def _halo(text) -> None:
    """Keep lines out of the letters."""
    text.set_path_effects([withStroke(linewidth=3, foreground="white")])
