"""The figures of chapter 02 show the arrays that they are given, and keep what `test_figures` asks of every figure."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Arc

from llm_internals.figures import embedding_and_rope as figures
from tests import test_figures
from tests.test_figures import AWKWARD, words

QUERY, KEY = np.array([1.0, 0.0]), np.array([0.0, 0.5])
COSINES = np.linspace(-0.5, 1, 64).reshape(8, 8)
LENGTHS = np.linspace(2, 4, 960)
RATES = np.array([math.pi / 2, 0.1])
PERIODS = np.array([6.3, 900.0, 1000.0, 40_000.0])
CURVES = {"one head": np.array([0.0, 3.0, 1.0]), "$another$": np.array([5.0, 5.0, 5.0])}
SCORES = np.arange(9.0).reshape(3, 3)

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "similarities": lambda: figures.similarities({"some": AWKWARD[:5], "$others$": AWKWARD[5:]}, COSINES),
    "vector_lengths": lambda: figures.vector_lengths(LENGTHS, {3: " strugg", 900: "$x^2$"}),
    "same_angle": lambda: figures.same_angle(QUERY, KEY, math.pi / 6, [(0, 0), (3, 1), (1, 3)]),
    "clocks": lambda: figures.clocks(RATES, ["pair 0", "pair 1"], [0, 1, 2, 1000]),
    "pairings": lambda: figures.pairings(8),
    "turn_lengths": lambda: figures.turn_lengths(PERIODS, 1000),
    "distance_scores": lambda: figures.distance_scores(CURVES),
    "score_maps": lambda: figures.score_maps({"turned": SCORES, "added": SCORES.T}, start=10),
}
"""One call of each figure function."""
RULES = [
    test_figures.test_a_figure_is_as_wide_as_the_page_and_leaves_no_trace,
    test_figures.test_a_figure_spells_any_token_without_a_warning_and_is_the_same_bytes_every_time,
    test_figures.test_no_text_is_smaller_than_eleven_pixels_and_nothing_sticks_out,
]


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_figure_keeps_the_rules_for_figures(
    rule: Callable[[Callable[[], Figure]], None], draw: Callable[[], Figure]
) -> None:
    rule(draw)


def test_the_cosines_lie_cell_by_cell_on_a_scale_around_zero_with_rules_behind_each_group() -> None:
    axes = DRAWINGS["similarities"]().axes[0]
    mesh = axes.collections[0]
    np.testing.assert_array_equal(mesh.get_array().reshape(8, 8), COSINES)
    assert mesh.get_clim() == (-1, 1)
    assert axes.get_ylim() == (8, 0), "the first token on top"
    assert [line.get_ydata()[0] for line in axes.lines[::2]] == [5, 8]
    assert [label.get_text() for label in axes.get_yticklabels()][:3] == ["␣Canberra", "↵", "<|im_end|>"]


def test_the_median_of_each_part_of_the_vocabulary_is_drawn_and_the_named_tokens_stand_at_their_length() -> None:
    axes = DRAWINGS["vector_lengths"]().axes[0]
    median, *named = axes.lines
    np.testing.assert_allclose(median.get_ydata(), LENGTHS.reshape(96, 10).mean(axis=1))
    assert [tuple(dot.get_xydata()[0]) for dot in named] == [(3, LENGTHS[3]), (900, LENGTHS[900])]
    assert "␣strugg" in words(DRAWINGS["vector_lengths"]())


def test_the_same_distance_has_the_same_score_and_the_arc_spans_the_angle_between() -> None:
    figure = figures.same_angle(QUERY, KEY, math.pi / 6, [(0, 0), (3, 1), (7, 5), (1, 3)])
    scores = [axes.get_xlabel() for axes in figure.axes]
    assert scores == ["score 0.00", "score 0.43", "score 0.43", "score −0.43"]
    arcs = [patch for axes in figure.axes for patch in axes.patches if isinstance(patch, Arc)]
    assert [(arc.theta2 - arc.theta1) % 360 for arc in arcs] == pytest.approx([90, 30, 30, 150])


def test_a_hand_has_turned_by_the_rate_times_the_position() -> None:
    grid = DRAWINGS["clocks"]().axes
    tips = [next(text.xy for text in axes.texts if text.arrow_patch is not None) for axes in grid]
    expected = [(math.cos(m * rate), math.sin(m * rate)) for rate in RATES for m in (0, 1, 2, 1000)]
    np.testing.assert_allclose(tips, expected, atol=1e-9)
    assert [axes.get_title() for axes in grid[:4]] == ["0", "1", "2", "1,000"]


def test_each_arc_joins_the_two_numbers_of_a_pair() -> None:
    halves, neighbours = DRAWINGS["pairings"]().axes
    for axes, pairs in ((halves, [(0, 4), (1, 5), (2, 6), (3, 7)]), (neighbours, [(0, 1), (2, 3), (4, 5), (6, 7)])):
        ends = [(arc.center[0] - arc.width / 2, arc.center[0] + arc.width / 2) for arc in axes.patches]
        assert ends == pairs


def test_a_pair_that_turns_exactly_once_in_the_context_counts_as_done() -> None:
    done, not_done, context = DRAWINGS["turn_lengths"]().axes[0].lines
    assert (list(done.get_ydata()), list(not_done.get_ydata())) == ([6.3, 900.0, 1000.0], [40_000.0])
    assert list(context.get_ydata()) == [1000, 1000]


def test_every_curve_is_drawn_below_its_own_best() -> None:
    sharp, flat = DRAWINGS["distance_scores"]().axes[0].lines
    assert (list(sharp.get_ydata()), list(flat.get_ydata())) == ([-3, 0, -2], [0, 0, 0])
    assert sharp.get_linestyle() != flat.get_linestyle()


def test_a_map_shows_its_scores_about_their_mean_with_the_first_query_on_top() -> None:
    figure = DRAWINGS["score_maps"]()
    turned, added, bar = figure.axes
    shown = turned.collections[0].get_array().reshape(3, 3)
    np.testing.assert_allclose(shown, (SCORES - 4) / SCORES.std())
    np.testing.assert_allclose(added.collections[0].get_array().reshape(3, 3), shown.T)
    bottom, top = turned.get_ylim()
    assert (bottom, top) == (12.5, 9.5)
    assert "standard deviations" in bar.get_ylabel()
