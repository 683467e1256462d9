"""The figures of ``05_sampling``: what temperature and truncation do to a distribution, and how a token is drawn.

Every function takes NumPy arrays and the text of the tokens, calls no stage, and returns a figure of fixed size. The
draw itself is the number line of `one_response`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter

from llm_internals.figures.labels import visible
from llm_internals.figures.style import FAINT, INK, KEPT, MONOSPACE, OTHER, REMOVED, RULE, SMALL, new_figure, styled

Number = int | float

ROW = 0.27
"""Inches that one row of a list needs."""
OVER_BAR = 8.0
"""Points: a number over a bar that is hardly wider, the smallest that a page may show."""
LINES = ((KEPT, "-"), (OTHER, (0, (5, 1.5))), (INK, (0, (1, 1))), (FAINT, (0, (4, 1, 1, 1))))
"""Colour and dashes of the first, second, third and fourth line of a chart."""


@styled
def shaping(
    pieces: Sequence[str],
    titles: Sequence[str],
    probs: Float[np.ndarray, "steps tokens"],
    kept: Bool[np.ndarray, "steps tokens"],
) -> Figure:
    """One distribution on its way through the operators: a panel a step, a row a token.

    A token that a step keeps has a full bar; one that it removes has an empty, hatched one, as long as the token was
    probable before. ``probs`` holds what each step leaves, with the probability before it where it removes.
    """
    figure = new_figure(0.85 + ROW * len(pieces))
    panels = figure.subplots(1, len(titles), sharey=True)
    for axes, title, values, stays in zip(panels, titles, np.asarray(probs), kept, strict=True):
        for row, (value, stay) in enumerate(zip(values, stays, strict=True)):
            _bar(axes, row, value, removed=not stay)
            note = f"{value:.3f}" if stay else "removed" if value > 0 else ""
            axes.annotate(note, (value, row), (4, 0), textcoords="offset points", va="center", fontsize=SMALL)
        axes.set_title(title, fontsize=SMALL, color=INK, loc="left")
        axes.set_xlim(0, 1.35)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
    _token_rows(panels[0], [visible(piece) for piece in pieces])
    return figure


@styled
def temperatures(
    prompts: Sequence[str],
    pieces: Sequence[Sequence[str]],
    values: Sequence[Number],
    probs: Float[np.ndarray, "prompts temperatures tokens"],
) -> Figure:
    """The likeliest tokens after each prompt (a row of panels) at each temperature (a column), and all others as one.

    ``probs`` holds the probabilities of the named tokens; what they lack of 1 is the last bar, hatched.
    """
    shown = np.asarray(probs)
    figure = new_figure(1.0 + len(prompts) * (0.4 + ROW * (shown.shape[2] + 1)))
    grid = figure.subplots(len(prompts), len(values), sharex=True, sharey="row", squeeze=False)
    for panels, prompt, names, rows in zip(grid, prompts, pieces, shown, strict=True):
        for axes, value, row in zip(panels, values, rows, strict=True):
            rest = 1 - row.sum()
            for place, share in enumerate([*row, rest]):
                _bar(axes, place, share, removed=place == len(row))
                if place in (0, len(row)):
                    axes.annotate(f"{share:.2f}", (share, place), (4, 0), textcoords="offset points", va="center")
            axes.set_title(f"T = {value:g}", fontsize=SMALL, color=FAINT, loc="left")
            axes.set_xlim(0, 1.3)
            axes.set_xticks([0, 1])
        _token_rows(panels[0], [*(visible(piece) for piece in names), "all others"])
        panels[0].set_title(f"{prompt}\nT = {values[0]:g}", fontsize=SMALL, color=INK, loc="left")
    return figure


@styled
def entropies(
    temperature: Float[np.ndarray, " points"], curves: Mapping[str, Float[np.ndarray, " points"]], ceiling: Number
) -> Figure:
    """Entropy against temperature, a line a prompt; `ceiling` is the entropy if all tokens were equally likely."""
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    axes.axhline(ceiling, color=REMOVED, linewidth=1)
    axes.annotate(
        "all tokens equally likely", (temperature[0], ceiling), (0, 4), textcoords="offset points", color=FAINT
    )
    _lines(axes, temperature, curves)
    axes.axvline(1, color=RULE, linewidth=1, zorder=0)
    axes.set_xlim(temperature[0], temperature[-1])
    axes.set_ylim(0, ceiling * 1.1)
    axes.set_xlabel("temperature")
    axes.set_ylabel("entropy in nats")
    return figure


@styled
def mass_by_rank(curves: Mapping[str, Float[np.ndarray, " vocab_size"]], p: Number | None = None) -> Figure:
    """How much probability the likeliest 1, 2, 3, ... tokens hold together, a line a distribution.

    ``curves`` holds the probabilities themselves, in any order. With `p`, a line at that height, and a dot with a
    number where a curve reaches it: the tokens that top-p keeps.
    """
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    sums = {name: np.cumsum(np.sort(probs)[::-1]) for name, probs in curves.items()}
    ranks = np.arange(1, 1 + len(next(iter(sums.values()))))
    axes.set_xscale("log")
    axes.set_xlim(0.9, ranks[-1] * 1.1)
    _lines(axes, ranks, sums)
    if p is not None:
        axes.axhline(p, color=REMOVED, linewidth=1)
        axes.annotate(
            f"p = {p:g}", (ranks[-1], p), (0, -4), textcoords="offset points", ha="right", va="top", color=FAINT
        )
        for (color, _), sum_of in zip(LINES, sums.values(), strict=False):
            n = int(np.argmax(sum_of >= p)) + 1
            axes.plot(n, sum_of[n - 1], "o", color=color, markersize=6)
            _halo(
                axes.annotate(
                    f"{n:,}", (n, sum_of[n - 1]), (5, -13), textcoords="offset points", color=color, weight="bold"
                )
            )
    axes.set_ylim(0, 1.03)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("number of likeliest tokens, logarithmic")
    axes.set_ylabel("probability they hold together")
    return figure


@styled
def candidates_along(pieces: Sequence[str], counts: Int[np.ndarray, " steps"]) -> Figure:
    """How many tokens could have been drawn at each step of a text, on a logarithmic scale, with the text beneath."""
    values = np.asarray(counts)
    figure = new_figure(3.4)
    axes = figure.add_subplot()
    places = np.arange(len(values))
    axes.bar(places, values, width=0.75, color=KEPT)
    for place, value in zip(places, values, strict=True):
        axes.annotate(
            f"{value}", (place, value), (0, 2), textcoords="offset points", ha="center", fontsize=OVER_BAR, color=INK
        )
    axes.set_yscale("log")
    axes.set_ylim(0.8, values.max() * 2.5)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlim(-0.7, len(values) - 0.3)
    axes.set_xticks(
        places, [visible(piece) for piece in pieces], rotation=90, family=MONOSPACE, fontsize=SMALL, color=INK
    )
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("tokens in the draw")
    return figure


def _bar(axes: Axes, row: int, width: Number, *, removed: bool) -> None:
    """A bar of a list: full, or hatched where its token was removed or stands for many."""
    look = {"color": "none", "edgecolor": FAINT, "hatch": "////", "linewidth": 0.8} if removed else {"color": KEPT}
    axes.barh(row, width, height=0.66, **look)


def _token_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a list, the first at the top."""
    axes.set_yticks(range(len(names)), names, family=MONOSPACE, fontsize=SMALL, color=INK)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _lines(axes: Axes, x: np.ndarray, curves: Mapping[str, np.ndarray]) -> None:
    """Lines that differ in colour and in dashes, named in a legend."""
    for (name, y), (color, dashes) in zip(curves.items(), LINES, strict=False):
        axes.plot(x, y, color=color, linestyle=dashes, linewidth=2, label=name)
    axes.grid(axis="y")
    axes.legend(frameon=False, fontsize=SMALL, handlelength=3.2)


def _halo(text) -> None:
    """Keep lines out of the letters."""
    text.set_path_effects([withStroke(linewidth=3, foreground="white")])
