"""The figures of chapter 10 show the arrays that they are given, and keep what `test_figures` asks of every figure."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from llm_internals.figures import temperature as figures
from llm_internals.figures.style import CHOSEN, REMOVED, RIGHT
from tests import test_figures
from tests.test_figures import AWKWARD, bars, words

T = np.arange(1, 41) / 20
RISING, PEAK = np.exp(-T), 0.4 * T * np.exp(1 - T)
SCORES = {"$x^2$": 3.0, "\n": 2.0, " a": 1.0}
LEVEL = 3 - T**2
TOY = np.array([[[0.3, 0.25], [0.6, 0.35]], [[0.3, 0.25], [0.6, 0.35]]])
DIAGRAM = figures.Diagram(
    "T = 1", np.array([0.1, 0.9]), np.array([3, 40]), np.array([0.15, 0.97]), np.array([0.33, 0.8])
)

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "sharpening": lambda: figures.sharpening(["one", "$two$"], [AWKWARD[:2], AWKWARD[3:5]], [0, 1], [1, 0.5], TOY),
    "against_temperature": lambda: figures.against_temperature(
        T, {"sampled": RISING, "$sure$": RISING**0.5}, {"greedy": 0.75}
    ),
    "contributions": lambda: figures.contributions(T, {"first": RISING / 2, "second": PEAK / 4, "rest": PEAK / 9}, 0.5),
    "single_questions": lambda: figures.single_questions(
        T, {"likeliest": {"$Au$": RISING}, "second": {"$a$": PEAK, "b": PEAK / 2}, "further": {"c": PEAK / 9}}
    ),
    "duels": lambda: figures.duels(
        T, [figures.Duel(name, " Abu", PEAK / 2, AWKWARD[3], RISING) for name in ("The capital is", "$x$ is")]
    ),
    "turning_point": lambda: figures.turning_point(
        T, LEVEL, SCORES, {"$x^2$": RISING, "\n": PEAK, " a": np.roll(PEAK, 5) / 2}
    ),
    "reliability_diagrams": lambda: figures.reliability_diagrams([DIAGRAM] * 4),
    "samples": lambda: figures.samples(
        T, RISING, np.array([0.5, 1.0]), np.array([0.6, 0.3]), np.array([[0.5, 0.7], [0.2, 0.45]])
    ),
    "votes": lambda: figures.votes(
        [f"{n} + 4" for n in range(24)], np.arange(24.0), np.full(24, 5.0), np.arange(24) % 3 > 0
    ),
    "prompts": lambda: figures.prompts(["The capital of X is", "$Q$"], np.array([0.3, 0.6]), np.array([0.6, 0.9])),
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


def test_the_right_token_is_green_and_a_wrong_one_that_leads_is_vermilion() -> None:
    figure = DRAWINGS["sharpening"]()
    colors = [[to_hex(bar.get_facecolor()).upper() for bar in bars(axes)[:2]] for axes in figure.axes]
    assert colors == [[RIGHT, REMOVED]] * 2 + [[CHOSEN, RIGHT]] * 2
    assert [round(bar.get_width(), 2) for bar in bars(figure.axes[1])] == [0.6, 0.35, 0.05]
    assert " Canberra (right)" in words(figure)


def test_each_curve_is_drawn_and_each_level_has_the_colour_of_its_curve() -> None:
    axes = DRAWINGS["against_temperature"]().axes[0]
    sampled, sure, level = axes.lines[:3]
    np.testing.assert_array_equal(sampled.get_ydata(), RISING)
    np.testing.assert_array_equal(sure.get_ydata(), RISING**0.5)
    assert set(level.get_ydata()) == {0.75}
    assert level.get_color() == sampled.get_color()


def test_the_areas_add_up_to_the_line_on_top() -> None:
    axes = DRAWINGS["contributions"]().axes[0]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), RISING / 2 + PEAK / 4 + PEAK / 9)
    assert len(axes.collections) == 3
    assert axes.collections[1].get_datalim(axes.transData).y1 == pytest.approx((RISING / 2 + PEAK / 4).max())


def test_a_panel_a_group_and_a_line_a_question() -> None:
    figure = DRAWINGS["single_questions"]()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["likeliest", "second", "further"]
    np.testing.assert_array_equal(figure.axes[1].lines[1].get_ydata(), PEAK / 2)
    assert [text.get_text() for text in figure.axes[1].get_legend().get_texts()] == ["$a$", "b"]


def test_in_a_duel_the_right_answer_is_green_and_named() -> None:
    axes = DRAWINGS["duels"]().axes[0]
    wrong, right = axes.lines[:2]
    np.testing.assert_array_equal(wrong.get_ydata(), RISING)
    np.testing.assert_array_equal(right.get_ydata(), PEAK / 2)
    assert (wrong.get_color(), right.get_color()) == (CHOSEN, RIGHT)
    assert [text.get_text() for text in axes.texts] == ["$x^2$", "␣Abu (right)"]


def test_scores_are_level_lines_and_a_dotted_line_joins_a_crossing_with_its_peak() -> None:
    upper, lower = DRAWINGS["turning_point"]().axes
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), LEVEL)
    levels = {line.get_ydata()[0] for line in upper.lines[1:] if len(set(line.get_ydata())) == 1}
    assert set(SCORES.values()) <= levels
    peaks = [line.get_xdata()[0] for line in lower.lines if line.get_marker() == "o"]
    assert peaks == [T[PEAK.argmax()], T[np.roll(PEAK, 5).argmax()]]
    assert all(any(set(line.get_xdata()) == {peak} for line in upper.lines) for peak in peaks)


def test_a_bar_is_the_accuracy_of_its_bin_and_a_mark_its_confidence() -> None:
    figure = DRAWINGS["reliability_diagrams"]()
    for axes in figure.axes:
        assert [bar.get_height() for bar in bars(axes)] == [0.33, 0.8]
        np.testing.assert_array_equal(axes.lines[1].get_ydata(), [0.15, 0.97])
        assert [text.get_text() for text in axes.texts] == ["3", "40"]
        assert axes.get_title(loc="left") == "T = 1"


def test_an_interval_reaches_from_its_lower_to_its_upper_end() -> None:
    axes = DRAWINGS["samples"]().axes[0]
    segments = axes.collections[0].get_segments()
    assert np.array(segments)[:, :, 1] == pytest.approx(np.array([[0.5, 0.7], [0.2, 0.45]]))


def test_votes_are_pairs_of_bars_and_greedy_a_dot_or_a_cross() -> None:
    axes = DRAWINGS["votes"]().axes[0]
    heights = [bar.get_height() for bar in bars(axes)]
    assert heights == [*range(24), *[5.0] * 24]
    dots, crosses = axes.lines
    assert crosses.get_xdata().tolist() == list(range(0, 24, 3))
    assert sorted([*dots.get_xdata(), *crosses.get_xdata()]) == list(range(24))


def test_a_prompt_has_its_sampled_and_its_greedy_accuracy_in_one_row() -> None:
    axes = DRAWINGS["prompts"]().axes[0]
    sampled, greedy = axes.lines
    assert (sampled.get_xdata().tolist(), greedy.get_xdata().tolist()) == ([0.3, 0.6], [0.6, 0.9])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["The capital of X is", "$Q$"]
