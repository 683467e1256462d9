"""The figures of ``11_four_bits``: sixteen levels, the bytes of a file, what rounding costs, and what bounds a step.

Every function takes numbers, calls no stage, and returns a figure of fixed size.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from matplotlib.patheffects import withStroke

from llm_internals.figures.style import (
    CHOSEN,
    FAINT,
    INK,
    KEPT,
    MONOSPACE,
    OTHER,
    REMOVED,
    SMALL,
    SOFT,
    TEXT,
    new_figure,
    styled,
)

Group = tuple[Float[np.ndarray, " numbers"], Float[np.ndarray, " levels"], Float[np.ndarray, " numbers"]]
"""Numbers, the levels that they may take, and the level that each was given."""

BYTES_OF_A_BLOCK = 20
HALF = 16
"""A Q4_1 block has 16 bytes of integers; each holds one of the first 16 numbers and one of the last."""
HALO = [withStroke(linewidth=3, foreground="white")]
PARTS = ((KEPT, "white"), (SOFT, INK), (OTHER, INK), (REMOVED, INK))
"""Colour of a part of the file, and of the text on it."""


@styled
def ladders(groups: Mapping[str, Group]) -> Figure:
    """Groups of numbers on a line each, with the levels that a group has: hollow before rounding, filled after it."""
    figure = new_figure(0.75 + 0.95 * len(groups))
    panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, (numbers, levels, rounded)) in zip(panels, groups.items(), strict=True):
        axes.vlines(levels, -0.45, 0.45, color=FAINT, linewidth=1)
        axes.axhline(0, color=REMOVED, linewidth=0.8, zorder=0)
        axes.plot(numbers, np.full(len(numbers), 0.85), "o", color=INK, markerfacecolor="white", markersize=7)
        for before, after in zip(numbers, rounded, strict=True):
            axes.plot([before, after], [0.85, 0], color=KEPT, linewidth=1.2, zorder=2)
        axes.plot(rounded, np.zeros(len(rounded)), "o", color=KEPT, markersize=8, zorder=3)
        axes.set_title(title, loc="left", fontsize=TEXT, color=INK)
        axes.set_ylim(-0.6, 1.25)
        axes.set_yticks([0, 0.85], ["rounded", "before"], color=INK)
        axes.tick_params(axis="y", length=0)
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.tick_params(axis="x", length=0 if axes is not panels[-1] else 3)
    panels[-1].set_xlabel("weight")
    return figure


@styled
def file_map(parts: Mapping[str, int], front: Mapping[str, int]) -> Figure:
    """The bytes of a weights file in their order: the whole at the top, and its beginning enlarged below.

    ``front`` divides the first of ``parts``.
    """
    figure = new_figure(3.1)
    axes = figure.add_subplot()
    total, first = sum(parts.values()), next(iter(parts.values()))
    widths = [np.array(list(part.values())) / sum(part.values()) for part in (parts, front)]
    for y, part, shares in ((1.5, parts, widths[0]), (0.0, front, widths[1])):
        edges = np.concatenate([[0.0], np.cumsum(shares)])
        for index, (name, (left, right)) in enumerate(zip(part, pairwise(edges), strict=True)):
            color, text = PARTS[index % len(PARTS)]
            axes.add_patch(Rectangle((left, y), right - left, 0.5, facecolor=color, edgecolor="white", linewidth=1))
            label = f"{name}\n{_size(part[name])}"
            if right - left > 0.15:
                axes.text((left + right) / 2, y + 0.25, label, ha="center", va="center", color=text, fontsize=SMALL)
            else:
                side, x = ("left", left) if left < 0.5 else ("right", right)
                axes.text(x, y + 0.56, label, ha=side, va="bottom", color=INK, fontsize=SMALL)
    zoom = [(0, 0.5), (0, 1.5), (first / total, 1.5), (1, 0.5)]
    axes.add_patch(Polygon(zoom, facecolor=KEPT, alpha=0.1, linewidth=0, zorder=0))
    axes.text(1, 2.62, f"the whole file: {total:,} bytes", ha="right", va="center", color=FAINT)
    axes.text(0.5, 0.62, f"the first {first:,} bytes, enlarged", ha="center", va="center", color=FAINT)
    axes.set_xlim(-0.005, 1.005)
    axes.set_ylim(-0.05, 2.75)
    axes.set_axis_off()
    return figure


def _size(nbytes: int) -> str:
    """A number of bytes with at most three digits before its unit."""
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}" if nbytes < 100 * size else f"{nbytes / size:.0f} {unit}"
    return f"{nbytes} bytes"


@styled
def block(raw: bytes, integers: Int[np.ndarray, " 32"], values: Float[np.ndarray, " 32"]) -> Figure:
    """A Q4_1 block: its 20 bytes, the 32 integers in them, and the 32 weights that these stand for.

    The right digit of a byte is its low half and gives one of the first 16 integers, the left digit one of the last 16.
    """
    if len(raw) != BYTES_OF_A_BLOCK:
        raise ValueError(f"raw must be the {BYTES_OF_A_BLOCK} bytes of a Q4_1 block, but has {len(raw)}")
    figure = new_figure(4.6)
    top, bottom = figure.subplots(2, 1, height_ratios=[1.0, 1.15])
    cell = 32 / BYTES_OF_A_BLOCK
    first = BYTES_OF_A_BLOCK - HALF
    for index, byte in enumerate(raw):
        left = index * cell
        top.add_patch(Rectangle((left + 0.05, 2.1), cell - 0.1, 0.95, facecolor="none", edgecolor=FAINT, linewidth=0.8))
        for digit, offset, color in zip(f"{byte:02x}", (-0.33, 0.33), (OTHER, KEPT), strict=True):
            x = left + cell / 2 + offset
            top.text(x, 2.64, digit, ha="center", va="center", color=INK, family=MONOSPACE)
            if index >= first:
                top.plot([x - 0.26, x + 0.26], [2.26, 2.26], color=color, linewidth=3, solid_capstyle="butt")
    for index, integer in enumerate(integers):
        color = KEPT if index < HALF else OTHER
        top.add_patch(Rectangle((index + 0.08, 0.0), 0.84, 0.9, facecolor="none", edgecolor=color, linewidth=1.6))
        top.text(index + 0.5, 0.45, str(integer), ha="center", va="center", color=INK, fontsize=SMALL)
    for index in (0, HALF - 1):
        middle = (first + index + 0.5) * cell
        top.plot([middle + 0.33, index + 0.5], [2.05, 0.95], color=KEPT, linewidth=1.2)
        top.plot([middle - 0.33, index + HALF + 0.5], [2.05, 0.95], color=OTHER, linewidth=1.2, linestyle=(0, (4, 2)))
    for left, right, name in ((0, 2, "step"), (2, 4, "minimum"), (4, 20, "16 bytes, two integers each")):
        top.text((left + right) / 2 * cell, 3.2, name, ha="center", va="bottom", color=FAINT, fontsize=SMALL)
    top.set_xlim(-0.3, 32.3)
    top.set_ylim(-0.1, 3.8)
    top.set_axis_off()
    colors = [KEPT] * HALF + [OTHER] * HALF
    places = np.arange(32) + 0.5
    bottom.vlines(places, 0, values, color=colors, linewidth=2)
    bottom.scatter(places, values, color=colors, s=26, zorder=3)
    bottom.axhline(0, color=FAINT, linewidth=0.8)
    bottom.set_xlim(-0.3, 32.3)
    bottom.set_xticks(places[[0, 15, 16, 31]], ["0", "15", "16", "31"])
    bottom.set_xlabel("place in the block")
    bottom.set_ylabel("weight")
    return figure


@styled
def integers_and_steps(shares: Float[np.ndarray, " 16"], steps: Float[np.ndarray, " groups"]) -> Figure:
    """How often each of the sixteen integers occurs, and how the steps of all groups are spread."""
    figure = new_figure(3.2)
    left, right = figure.subplots(1, 2)
    colors = [OTHER if index in (0, len(shares) - 1) else KEPT for index in range(len(shares))]
    left.bar(np.arange(len(shares)), np.asarray(shares) * 100, color=colors, width=0.82)
    left.set_xticks(np.arange(0, len(shares), 3))
    left.set_xlabel("integer")
    left.set_ylabel("% of all weights")
    left.grid(axis="y")
    edges = np.geomspace(np.min(steps), np.max(steps), 60)
    right.hist(steps, bins=edges, color=KEPT)
    right.axvline(np.median(steps), color=INK, linestyle=(0, (4, 2)), linewidth=1.4)
    right.annotate(" median", (np.median(steps), 1), xycoords=("data", "axes fraction"), va="top", color=INK)
    right.set_xscale("log")
    right.xaxis.set_major_formatter(lambda step, _: f"{step:g}")
    right.yaxis.set_major_formatter(lambda count, _: f"{count / 1000:,.0f}")
    right.set_xlabel("step between two levels (logarithmic)")
    right.set_ylabel("thousand groups")
    return figure


@styled
def damage(
    names: Sequence[str],
    bits: Float[np.ndarray, " ways"],
    divergence: Float[np.ndarray, " ways"],
    agreement: Float[np.ndarray, " ways"],
) -> Figure:
    """What ways to round cost: bits a weight against divergence of the next token, and the share of equal winners."""
    figure = new_figure(3.9)
    left, right = figure.subplots(1, 2, sharex=True)
    for axes, values in ((left, divergence), (right, np.asarray(agreement) * 100)):
        axes.plot(bits, values, "o", color=KEPT, markersize=8)
        for name, x, y in zip(names, bits, values, strict=True):
            side = "right" if x > 6 else "left"
            text = axes.annotate(name, (x, y), (-8 if side == "right" else 8, 0), textcoords="offset points")
            text.set(ha=side, va="center", color=INK, fontsize=SMALL, path_effects=HALO)
        axes.set_xlabel("bits a weight, scales included")
        axes.grid()
    left.set_yscale("log")
    left.yaxis.set_major_formatter(lambda kl, _: f"{kl:g}")
    left.set_ylabel("KL divergence, nats a token")
    right.set_ylabel("% of tokens with the same winner")
    right.set_ylim(0, 105)
    left.set_xlim(min(bits) - 0.6, max(bits) + 0.6)
    return figure


@styled
def roofline(bytes_a_second: float, multiplications_a_second: float, runs: Mapping[str, tuple[float, float]]) -> Figure:
    """What memory and arithmetic allow, and what was reached: multiplications a byte against multiplications a second.

    Left of the bend, memory is the limit, and speed is in proportion to the multiplications for each byte.
    """
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    bend = multiplications_a_second / bytes_a_second
    low = min(x for x, _ in runs.values()) / 3
    high = max([bend, *(x for x, _ in runs.values())]) * 4
    x = np.geomspace(low, high, 200)
    roof = np.minimum(x * bytes_a_second, multiplications_a_second) / 1e9
    axes.plot(x, roof, color=INK, linewidth=2)
    axes.fill_between(x, roof, roof.max() * 10, color=REMOVED, alpha=0.25, linewidth=0)
    axes.axvline(bend, color=FAINT, linewidth=1, linestyle=(0, (2, 2)))
    axes.text(bend / 1.15, roof.max() * 1.6, "limit: memory", ha="right", va="bottom", color=FAINT)
    axes.text(bend * 1.15, roof.max() * 1.6, "limit: arithmetic", ha="left", va="bottom", color=FAINT)
    for (name, (intensity, speed)), color, marker in zip(
        runs.items(), (KEPT, OTHER, CHOSEN, INK), "osD^", strict=False
    ):
        axes.plot(intensity, speed / 1e9, marker, color=color, markersize=8)
        place = (-10, -6) if intensity > bend else (10, -6)
        text = axes.annotate(name, (intensity, speed / 1e9), place, textcoords="offset points", color=INK)
        text.set(va="top", ha="right" if intensity > bend else "left", path_effects=HALO)
    lowest = min(min(speed for _, speed in runs.values()) / 1e9, roof.min())
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(lowest / 3, roof.max() * 3.2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("multiplications for each byte that is read")
    axes.set_ylabel("billion multiplications a second")
    return figure


@styled
def engines(
    names: Sequence[str],
    milliseconds: Float[np.ndarray, " engines"],
    spread: Float[np.ndarray, "engines 2"],
    limits: Float[np.ndarray, " engines"],
) -> Figure:
    """How long a step takes in each engine, and the time in which memory could deliver the bytes that it reads."""
    figure = new_figure(1.2 + 0.55 * len(names))
    axes = figure.add_subplot()
    places = np.arange(len(names))
    axes.barh(places, milliseconds, height=0.6, color=SOFT)
    axes.barh(places, np.minimum(limits, milliseconds), height=0.6, color=KEPT)
    errors = np.abs(np.asarray(spread).T - np.asarray(milliseconds))
    axes.errorbar(milliseconds, places, xerr=errors, fmt="none", ecolor=INK, elinewidth=1.4, capsize=4)
    for place, time, (_, high), limit in zip(places, milliseconds, spread, limits, strict=True):
        label = (
            f"{time:.0f} ms, memory alone {limit:.0f} ms"
            if time >= 10
            else f"{time:.1f} ms, memory alone {limit:.1f} ms"
        )
        axes.annotate(label, (max(time, high), place), (8, 0), textcoords="offset points", va="center", color=INK)
        axes.texts[-1].set_fontsize(SMALL)
    axes.set_yticks(places, names, color=INK)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, max(high for _, high in spread) * 1.6)
    axes.set_xlabel("milliseconds a token")
    axes.grid(axis="x")
    return figure
