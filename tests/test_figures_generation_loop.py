"""The figures of chapter 07 show the numbers that they are given, and keep what `test_figures` asks of every figure."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from llm_internals.figures import generation_loop as figures
from llm_internals.figures.style import KEPT, SOFT
from tests import test_figures
from tests.test_figures import AWKWARD, words

SECONDS = np.array([0.4, 0.1, 0.1, 0.2])
COUNTS = np.array([700, 100, 100, 100])
LENGTHS = np.array([1, 10, 100, 1000])
STEP, PASS = np.array([100, 110, 200, 1100]), np.array([200, 1100, 20_000, 1_100_000])
PARTS = ["projections", "attention", "$x^2$"]
WORK, SPENT = np.array([60, 40, 0]), np.array([0.5, 0.3, 0.2])

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "passes": lambda: figures.passes(AWKWARD, 3),
    "rulers": lambda: figures.rulers(SECONDS, COUNTS, AWKWARD[:4], 37),
    "growth": lambda: figures.growth(
        LENGTHS,
        {"with a cache": STEP, "without": PASS},
        LENGTHS[1:3],
        {"with a cache": np.array([0.04, 0.041]), "without": np.array([0.09, 0.9])},
    ),
    "crossing": lambda: figures.crossing(LENGTHS, {"projections": 80, "output matrix": 20}, LENGTHS, 100.0),
    "shares": lambda: figures.shares(PARTS, {"after 40": (WORK, SPENT), "after 1,000": (WORK[::-1], SPENT)}),
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


def boxes(axes, color: str) -> list[Rectangle]:
    """The rectangles of one colour."""
    return [box for box in axes.patches if isinstance(box, Rectangle) and same_color(box.get_facecolor(), color)]


def test_with_a_cache_the_prompt_is_computed_once_and_then_one_position_a_row() -> None:
    """Eight pieces, three of them the prompt: five passes."""
    cached, uncached = DRAWINGS["passes"]().axes
    assert len(boxes(cached, KEPT)) == 3 + 4
    assert len(boxes(cached, SOFT)) == 3 + 4 + 5 + 6
    assert len(boxes(uncached, KEPT)) == 3 + 4 + 5 + 6 + 7
    assert not boxes(uncached, SOFT)
    assert cached.get_title(loc="left").endswith("7 positions computed")
    assert uncached.get_title(loc="left").endswith("25 positions computed")


def test_a_pass_shows_the_token_that_it_chose_behind_its_last_position() -> None:
    cached = DRAWINGS["passes"]().axes[0]
    assert [int(text.get_position()[0]) for text in cached.texts] == [3, 4, 5, 6, 7]
    assert len(cached.get_xticklabels()) == 7, "the last token goes through no pass"


def test_both_rulers_have_the_same_length_and_each_turn_its_share() -> None:
    axes = DRAWINGS["rulers"]().axes[0]
    for y, values in ((1.0, SECONDS), (0.0, COUNTS)):
        row = [box for box in axes.patches if isinstance(box, Rectangle) and box.get_y() == y]
        assert [box.get_width() for box in row] == pytest.approx((values / values.sum()).tolist())
    assert "prefill: 70%" in words(DRAWINGS["rulers"]())


def test_growth_draws_counts_in_billions_and_the_seconds_as_they_are() -> None:
    left, right = DRAWINGS["growth"]().axes
    np.testing.assert_allclose(left.lines[0].get_ydata(), STEP / 1e9)
    np.testing.assert_allclose(left.lines[1].get_ydata(), PASS / 1e9)
    np.testing.assert_array_equal(right.lines[1].get_ydata(), [0.09, 0.9])
    assert left.get_xscale() == left.get_yscale() == right.get_yscale() == "log"
    assert left.lines[0].get_linestyle() != left.lines[1].get_linestyle()


def test_the_dashed_line_stands_where_attention_is_as_high_as_the_rest() -> None:
    axes = DRAWINGS["crossing"]().axes[0]
    assert axes.lines[0].get_xdata()[0] == 100.0
    assert axes.get_ylim()[1] == pytest.approx((100 + 1000) / 1e6)
    assert any("100 positions" in word for word in words(DRAWINGS["crossing"]()))


def test_shares_are_of_their_own_sum_and_nothing_is_called_nothing() -> None:
    first, second = DRAWINGS["shares"]().axes
    widths = [[bar.get_width() for bar in bars] for bars in first.containers]
    assert widths == [pytest.approx([0.6, 0.4, 0.0]), pytest.approx([0.5, 0.3, 0.2])]
    assert [text.get_text() for text in first.texts] == ["60%", "40%", "0%", "50%", "30%", "20%"]
    assert [text.get_text() for text in second.texts][:3] == ["0%", "40%", "60%"]
