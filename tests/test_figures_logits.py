"""The figures of chapter 04 show the arrays that they are given, and keep what `test_figures` asks of every figure."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

from llm_internals.figures import logits as figures
from tests import test_figures
from tests.test_figures import AWKWARD, bars, words

VECTORS = np.array([[0.4, 0.1], [0.1, 0.15], [0.2, -0.7], [-0.2, -0.3]])
HIDDEN = np.array([7.0, 2.0])
SCORES = np.vstack([np.linspace(-20, 12, 500), np.append(np.linspace(-18, 9, 499), 24.3)])
PROBS = np.array([[0.9, 0.06, 0.005], [0.4, 0.3, 0.2]])
SHARES = {" Sydney": np.array([[1.0, -2.0, 3.0], [0.5, 0.0, 8.0]]), "$x^2$": np.zeros((2, 3))}

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "shadows": lambda: figures.shadows(AWKWARD[:4], VECTORS, HIDDEN),
    "score_histograms": lambda: figures.score_histograms(
        ["one", "$two$"], SCORES, [" small", "\n"], np.array([15.9, 24.3])
    ),
    "surprisals": lambda: figures.surprisals(AWKWARD, np.linspace(0, 12, 8), np.linspace(5, 1, 8)),
    "lens": lambda: figures.lens(
        ["embedding", *(f"block {b}" for b in range(9))], [AWKWARD[:3], AWKWARD[3:6]] * 5, np.tile(PROBS, (5, 1))
    ),
    "ranks": lambda: figures.ranks({" Sydney": np.array([9107, 300, 1]), " a": np.array([29665, 400, 2])}, 49152),
    "contributions": lambda: figures.contributions(SHARES, ["attention", "feed-forward network"]),
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


def test_each_shadow_lies_on_the_direction_as_far_out_as_its_score_says() -> None:
    figure = DRAWINGS["shadows"]()
    dots = [line.get_xydata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    length = np.linalg.norm(HIDDEN)
    assert [float(dot @ HIDDEN / length) for dot in dots] == pytest.approx((VECTORS @ HIDDEN / length).tolist())
    assert [float(dot[0] * HIDDEN[1] - dot[1] * HIDDEN[0]) for dot in dots] == pytest.approx([0] * 4)
    assert [word.split()[-1] for word in words(figure) if "score" in word] == ["3", "1", "0", "−2"]


def test_the_histogram_counts_every_score_and_marks_the_log_sum_exp() -> None:
    figure = DRAWINGS["score_histograms"]()
    for axes, level in zip(figure.axes, (15.9, 24.3), strict=True):
        assert sum(bar.get_height() for bar in bars(axes)) == 500
        assert axes.lines[0].get_xdata()[0] == level
        assert axes.get_xlim()[1] > level
    assert {"␣small", "↵"} <= set(words(figure))


def test_surprisal_is_a_bar_and_entropy_a_mark_for_each_token() -> None:
    axes = DRAWINGS["surprisals"]().axes[0]
    assert [bar.get_height() for bar in bars(axes)] == pytest.approx(np.linspace(0, 12, 8))
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), np.linspace(5, 1, 8))
    assert [label.get_text() for label in axes.get_xticklabels()][:2] == ["␣Canberra", "↵"]


def test_the_lens_names_every_token_and_writes_probabilities_that_are_not_tiny() -> None:
    figure = DRAWINGS["lens"]()
    np.testing.assert_array_equal(figure.axes[0].collections[0].get_array().reshape(10, 3)[:2], PROBS)
    shown = [text.get_text() for text in figure.axes[0].texts][:11]
    assert shown == ["␣Canberra", "0.90", "↵", "0.06", "<|im_end|>", "$x^2$", "0.40", "\\frac", "0.30", "_a_", "0.20"]


def test_the_first_place_of_the_ranking_is_on_top() -> None:
    axes = DRAWINGS["ranks"]().axes[0]
    low, high = axes.get_ylim()
    assert low > 49152 > 1 > high
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [9107, 300, 1])
    assert axes.lines[0].get_linestyle() != axes.lines[1].get_linestyle()


def test_each_part_of_each_block_has_a_bar_as_high_as_its_share() -> None:
    figure = DRAWINGS["contributions"]()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["␣Sydney", "$x^2$"]
    assert [bar.get_height() for bar in bars(figure.axes[0])] == [1.0, -2.0, 3.0, 0.5, 0.0, 8.0]
