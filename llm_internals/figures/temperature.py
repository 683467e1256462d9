"""The figures of ``10_temperature_is_not_accuracy``: confidence and accuracy against temperature.

Every function takes NumPy arrays and text, calls no stage, and returns a figure of fixed size. Green is the right
answer, vermilion a wrong one that leads, on every figure here.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from llm_internals.figures.labels import visible
from llm_internals.figures.style import (
    CHOSEN,
    FAINT,
    INK,
    KEPT,
    MONOSPACE,
    OTHER,
    REMOVED,
    RIGHT,
    RULE,
    SMALL,
    SOFT,
    TEXT,
    new_figure,
    styled,
)

Number = int | float
Curve = Float[np.ndarray, " temperatures"]

ROW = 0.27
"""Inches that one row of a list needs."""
LINES = ((KEPT, "-"), (OTHER, (0, (5, 1.5))), (INK, (0, (1, 1))))
"""Colour and dashes of the first, second and third line of a chart."""
DASHED = (0, (5, 1.5))


class Duel(NamedTuple):
    """A question whose right answer isn't the likeliest: both tokens, and their probabilities at each temperature."""

    question: str
    right: str
    right_curve: Curve
    wrong: str
    wrong_curve: Curve


class Diagram(NamedTuple):
    """The answers at one temperature, sorted by confidence into bins; `errors` is their calibration error."""

    title: str
    edges: Float[np.ndarray, " bins"]
    counts: Int[np.ndarray, " bins"]
    confidence: Float[np.ndarray, " bins"]
    accuracy: Float[np.ndarray, " bins"]


@styled
def sharpening(
    titles: Sequence[str],
    pieces: Sequence[Sequence[str]],
    right: Sequence[int],
    values: Sequence[Number],
    probs: Float[np.ndarray, "questions temperatures tokens"],
) -> Figure:
    """The likeliest tokens of each question (a row of panels) at each temperature (a column); the right one is green.

    ``probs`` holds the named tokens alone; what they lack of 1 is the last bar, hatched.
    """
    shown = np.asarray(probs)
    figure = new_figure(0.9 + len(titles) * (0.5 + ROW * (shown.shape[2] + 1)))
    grid = figure.subplots(len(titles), len(values), sharex=True, sharey="row", squeeze=False)
    for panels, title, names, place, rows in zip(grid, titles, pieces, right, shown, strict=True):
        for axes, value, row in zip(panels, values, rows, strict=True):
            colors = [RIGHT if token == place else CHOSEN if token == 0 else REMOVED for token in range(len(row))]
            axes.barh(range(len(row)), row, height=0.66, color=colors)
            axes.barh(len(row), 1 - row.sum(), height=0.66, color="none", edgecolor=FAINT, hatch="////", linewidth=0.8)
            for token, share in enumerate([*row, 1 - row.sum()]):
                axes.annotate(f"{share:.2f}", (share, token), (4, 0), textcoords="offset points", va="center")
                axes.texts[-1].set(fontsize=SMALL, color=FAINT)
            axes.set_title(f"T = {value:g}", fontsize=SMALL, color=FAINT, loc="left")
            axes.set_xlim(0, 1.35)
            axes.set_xticks([])
            axes.spines["bottom"].set_visible(False)
        names = [f"{name} (right)" if token == place else name for token, name in enumerate(names)]
        panels[0].set_yticks(range(len(names) + 1), [*names, "all others"], fontsize=SMALL, color=INK)
        panels[0].set_ylim(len(names) + 0.6, -0.6)
        panels[0].set_title(f"{title}\nT = {values[0]:g}", fontsize=SMALL, color=INK, loc="left")
        for axes in panels:
            axes.tick_params(axis="y", length=0)
    return figure


@styled
def against_temperature(
    temperature: Curve, curves: Mapping[str, Curve], levels: Mapping[str, Number], label: str = "share of questions"
) -> Figure:
    """Shares against temperature, a line each, and for each of `levels` a dotted line at what no temperature moves.

    The n-th level has the colour of the n-th curve: it is what that curve tends to.
    """
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    for (name, curve), (color, dashes) in zip(curves.items(), LINES, strict=False):
        axes.plot(temperature, curve, color=color, linestyle=dashes, linewidth=2.2, label=name)
    for (name, level), (color, _) in zip(levels.items(), LINES, strict=False):
        axes.axhline(level, color=color, linewidth=1.2, linestyle=(0, (1, 1.5)), zorder=1)
        text = axes.annotate(
            name, (temperature[-1], level), (0, 4), textcoords="offset points", ha="right", color=color
        )
        text.set_fontsize(SMALL)
    _temperature_axis(axes, temperature)
    _share_axis(axes, label)
    axes.legend(frameon=False, fontsize=SMALL, handlelength=3.2, loc="lower left")
    return figure


@styled
def contributions(temperature: Curve, parts: Mapping[str, Curve], level: Number) -> Figure:
    """What each group of questions adds to the accuracy of a sample, in stacked areas; a dotted line at `level`."""
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    looks = ((SOFT, None), (KEPT, None), (OTHER, "////"))
    floor = np.zeros_like(temperature)
    for (name, part), (color, hatch) in zip(parts.items(), looks, strict=False):
        axes.fill_between(
            temperature, floor, floor + part, facecolor=color, hatch=hatch, edgecolor="white", linewidth=0, label=name
        )
        floor = floor + part
    axes.plot(temperature, floor, color=INK, linewidth=1.6, label="together: sampled accuracy")
    axes.axhline(level, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)))
    axes.annotate("greedy accuracy", (temperature[-1], level), (0, 4), textcoords="offset points", ha="right")
    axes.texts[-1].set(fontsize=SMALL, color=INK)
    _temperature_axis(axes, temperature)
    _share_axis(axes, "share of all questions")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1], labels[::-1], frameon=False, fontsize=SMALL, loc="center right", bbox_to_anchor=(1, 0.55)
    )
    return figure


@styled
def single_questions(temperature: Curve, groups: Mapping[str, Mapping[str, Curve]]) -> Figure:
    """The probability of the right answer against temperature, a panel a group, a line a question."""
    figure = new_figure(4.3)
    panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axes, (title, curves) in zip(panels, groups.items(), strict=True):
        for (name, curve), (color, dashes) in zip(curves.items(), LINES, strict=False):
            axes.plot(temperature, curve, color=color, linestyle=dashes, linewidth=2, label=name)
        axes.set_title(title, fontsize=TEXT, color=INK, loc="left")
        _temperature_axis(axes, temperature)
        axes.grid(axis="y")
        axes.legend(frameon=False, fontsize=SMALL, handlelength=2.4, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    _share_axis(panels[0], "p(right answer)")
    return figure


@styled
def duels(temperature: Curve, cases: Sequence[Duel]) -> Figure:
    """The right answer and the wrong one that leads, against temperature, a panel a question."""
    figure = new_figure(3.3)
    panels = figure.subplots(1, len(cases), sharey=True, squeeze=False)[0]
    for axes, case in zip(panels, cases, strict=True):
        axes.plot(temperature, case.wrong_curve, color=CHOSEN, linestyle=DASHED, linewidth=2.2)
        axes.plot(temperature, case.right_curve, color=RIGHT, linewidth=2.2)
        quarter, peak = len(temperature) // 4, int(np.argmax(case.right_curve))
        _name_curve(axes, visible(case.wrong), (temperature[quarter], case.wrong_curve[quarter]), (8, 4), CHOSEN)
        label = f"{visible(case.right)} (right)"
        _name_curve(axes, label, (temperature[peak], case.right_curve[peak]), (0, 5), RIGHT, ha="center")
        axes.set_title(case.question, fontsize=SMALL, color=INK, loc="left")
        _temperature_axis(axes, temperature)
        axes.grid(axis="y")
    _share_axis(panels[0], "probability")
    return figure


@styled
def turning_point(
    temperature: Curve, level: Curve, scores: Mapping[str, Number], curves: Mapping[str, Curve]
) -> Figure:
    """Above: each token's score, and the expected score that it is held against. Below: the tokens' probabilities.

    Where a score and the expected score cross, the probability below has its peak; a dotted line joins the two.
    """
    figure = new_figure(5.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.15, 1))
    looks = ((CHOSEN, DASHED), (RIGHT, "-"), (OTHER, (0, (1, 1))))
    low, high = min(scores.values()) - 2, max(scores.values()) + 1
    upper.plot(temperature, level, color=INK, linewidth=2.2)
    below = int(np.argmax(level < low + 1))
    _name_curve(upper, "expected score", (temperature[below], level[below]), (8, 0), INK)
    best = max(scores.values())
    for (name, score), curve, (color, dashes) in zip(scores.items(), curves.values(), looks, strict=False):
        upper.axhline(score, color=color, linestyle=dashes, linewidth=1.6)
        _name_curve(
            upper, visible(name), (temperature[0], score), (4, -13 if score == min(scores.values()) else 4), color
        )
        lower.plot(temperature, curve, color=color, linestyle=dashes, linewidth=2.2)
        if score < best:
            peak = int(np.argmax(curve))
            upper.plot(temperature[peak], score, "o", color=color, markersize=6)
            lower.plot(temperature[peak], curve[peak], "o", color=color, markersize=6)
            for axes in (upper, lower):
                axes.axvline(temperature[peak], color=color, linewidth=1, linestyle=(0, (1, 1.5)))
    upper.set_ylabel("score (logit)")
    upper.set_ylim(low, high)
    lower.set_xscale("log")
    ticks = [t for t in (0.05, 0.1, 0.2, 0.5, 1, 2, 5) if temperature[0] <= t <= temperature[-1]]
    lower.set_xticks(ticks, [f"{t:g}" for t in ticks])
    lower.set_xticks([], minor=True)
    lower.set_xlim(temperature[0], temperature[-1])
    lower.set_xlabel("temperature, logarithmic")
    _share_axis(lower, "probability")
    return figure


@styled
def reliability_diagrams(diagrams: Sequence[Diagram]) -> Figure:
    """Accuracy of the answers in each bin of confidence, a panel a temperature; on the diagonal the two agree.

    Over each bar stands how many answers it holds; the mark is their mean confidence.
    """
    rows = (len(diagrams) + 1) // 2
    figure = new_figure(0.7 + 2.75 * rows)
    panels = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False)
    for axes, one in zip(panels.flat, diagrams, strict=False):
        width = 1 / 10
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle=(0, (3, 2)), zorder=1)
        axes.bar(one.edges, one.accuracy, width=width * 0.92, align="edge", color=KEPT, zorder=2, label="accuracy")
        axes.plot(
            one.edges + width * 0.46,
            one.confidence,
            "_",
            color=CHOSEN,
            markersize=13,
            markeredgewidth=2.4,
            zorder=3,
            label="mean confidence",
        )
        for edge, n, top in zip(one.edges, one.counts, np.maximum(one.accuracy, one.confidence), strict=True):
            place = (edge + width * 0.46, top)
            _halo(axes.annotate(f"{n}", place, (0, 4), textcoords="offset points", ha="center"))
            axes.texts[-1].set(fontsize=8, color=FAINT)
        axes.set_title(one.title, fontsize=TEXT, color=INK, loc="left")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.12)
        axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        axes.set_yticks([0, 0.5, 1], ["0", ".5", "1"])
    for axes in panels[-1]:
        axes.set_xlabel("confidence, in ten bins")
    for axes in panels[:, 0]:
        axes.set_ylabel("share that is right")
    panels[0, 0].legend(frameon=False, fontsize=SMALL, loc="upper left")
    return figure


@styled
def samples(
    temperature: Curve,
    expected: Curve,
    drawn: Float[np.ndarray, " points"],
    shares: Float[np.ndarray, " points"],
    ends: Float[np.ndarray, "points 2"],
) -> Figure:
    """The exact expectation as a line, and at some temperatures what was sampled, with its interval."""
    figure = new_figure(3.4)
    axes = figure.add_subplot()
    axes.plot(temperature, expected, color=KEPT, linewidth=2.2, label="exact expectation")
    reach = np.abs(np.asarray(ends).T - shares)
    axes.errorbar(
        drawn, shares, yerr=reach, fmt="o", color=CHOSEN, capsize=4, linewidth=1.6, label="sampled, with 95 % interval"
    )
    _temperature_axis(axes, temperature)
    _share_axis(axes, "share of right draws")
    axes.legend(frameon=False, fontsize=SMALL, loc="lower left")
    return figure


@styled
def votes(
    names: Sequence[str],
    right: Float[np.ndarray, " questions"],
    rival: Float[np.ndarray, " questions"],
    greedy: Bool[np.ndarray, " questions"],
) -> Figure:
    """Votes for the right number and for the most frequent wrong one, a pair of bars a question.

    Above each pair stands whether greedy decoding got it right: a full dot, or a cross.
    """
    places = np.arange(len(names))
    figure = new_figure(3.6)
    axes = figure.add_subplot()
    axes.bar(places - 0.2, right, width=0.4, color=RIGHT, label="votes for the right number")
    axes.bar(
        places + 0.2,
        rival,
        width=0.4,
        color="white",
        edgecolor=CHOSEN,
        hatch="/////",
        label="for the most frequent wrong one",
    )
    top = float(max(np.max(right), np.max(rival))) * 1.12
    for hit, marker, color, name in ((True, "o", RIGHT, "greedy right"), (False, "x", CHOSEN, "greedy wrong")):
        chosen = places[np.asarray(greedy) == hit]
        axes.plot(chosen, np.full(len(chosen), top), marker, color=color, markersize=7, markeredgewidth=2, label=name)
    axes.set_xticks(places, names, rotation=90, fontsize=SMALL, color=INK)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.7, len(names) - 0.3)
    axes.set_ylabel("samples")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y")
    axes.legend(frameon=False, fontsize=SMALL, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return figure


@styled
def prompts(
    names: Sequence[str], sampled: Float[np.ndarray, " prompts"], greedy: Float[np.ndarray, " prompts"]
) -> Figure:
    """Sampled and greedy accuracy of the same questions under several prompts, a row a prompt."""
    rows = np.arange(len(names))
    figure = new_figure(1.1 + 0.36 * len(names))
    axes = figure.add_subplot()
    axes.hlines(rows, sampled, greedy, color=RULE, linewidth=4, zorder=1)
    axes.plot(sampled, rows, "o", color=KEPT, markersize=8, label="sampled at T = 1")
    axes.plot(greedy, rows, "D", color=INK, markersize=7, label="greedy (T = 0)")
    axes.set_yticks(rows, names, color=INK)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1)
    axes.grid(axis="x")
    axes.set_xlabel("share of capitals that is right")
    axes.legend(frameon=False, fontsize=SMALL, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    return figure


def _temperature_axis(axes: Axes, temperature: Curve) -> None:
    """From 0 to the highest temperature, with a hairline at the model's own distribution."""
    axes.axvline(1, color=RULE, linewidth=1, zorder=0)
    axes.set_xlim(0, temperature[-1])
    axes.set_xticks([0, 0.5, 1, 1.5, 2], ["0", "0.5", "1", "1.5", "2"])
    axes.set_xlabel("temperature")


def _share_axis(axes: Axes, label: str) -> None:
    """From 0 to 1."""
    axes.set_ylim(0, 1.03)
    axes.grid(axis="y")
    axes.set_ylabel(label)


def _name_curve(
    axes: Axes, name: str, place: tuple[Number, Number], offset: tuple[int, int], color: str, ha: str = "left"
) -> None:
    """Write beside a curve what it is, in its colour."""
    text = axes.annotate(name, place, offset, textcoords="offset points", ha=ha, color=color, fontsize=SMALL)
    text.set_fontfamily(MONOSPACE if "␣" in name else "DejaVu Sans")
    _halo(text)


def _halo(text) -> None:
    """Keep lines out of the letters."""
    text.set_path_effects([withStroke(linewidth=3, foreground="white")])
