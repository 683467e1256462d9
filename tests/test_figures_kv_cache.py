"""The figures of chapter 03c show the arrays that they are given, and keep what `test_figures` asks of every figure."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from llm_internals.figures import kv_cache as figures
from llm_internals.figures import style
from tests import test_figures
from tests.test_figures import AWKWARD, bars, words

STEPS = np.array([[row + 1 + 3 * max(0, column - 3) for column in range(6)] for row in range(3)])
WRITTEN = np.array([[[column < end for column in range(9)] for _ in range(4)] for end in (5, 6, 8)])
LENGTHS = np.array([10, 100, 8192])
LINES = {"patterns,\nif kept": 1000.0 * LENGTHS**2, "$x^2$": 9e4 * LENGTHS, "as it is": 4e4 * LENGTHS}
RIGHT = np.tri(3, 8, 5, dtype=bool)
TOP_LEFT = np.tri(3, 8, 0, dtype=bool)

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "new_row": lambda: figures.new_row(AWKWARD[:5]),
    "dependencies": lambda: figures.dependencies(AWKWARD[:6], 4, STEPS),
    "filling": lambda: figures.filling(["after prefill", "$a$", "at the end"], WRITTEN),
    "memory": lambda: figures.memory(LENGTHS, LINES),
    "worth": lambda: figures.worth(AWKWARD, np.geomspace(3, 1e-6, 8)),
    "masks": lambda: figures.masks(["right", "top left"], [RIGHT, TOP_LEFT]),
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


def test_the_new_row_needs_one_query_and_the_keys_and_values_of_all_positions() -> None:
    figure = DRAWINGS["new_row"]()
    letters = [text.get_text() for text in figure.axes[0].texts if text.get_text() in {"q", "k", "v"}]
    assert sorted(letters) == ["k"] * 5 + ["q"] * 5 + ["v"] * 5
    colors = [to_hex(bar.get_facecolor()).upper() for bar in bars(figure.axes[0]) if bar.get_fill()]
    cells = {color: colors.count(color) for color in (style.KEPT, style.SOFT, style.RULE)}
    assert cells == {style.KEPT: 1 + 5 + 2, style.SOFT: 2 * 4, style.RULE: 1 + 2 + 3 + 4}


def test_every_vector_of_the_dependencies_carries_its_step_and_is_joined_to_all_before_it() -> None:
    axes = DRAWINGS["dependencies"]().axes[0]
    shown = [text.get_text() for text in axes.texts if text.get_text().isdigit()]
    assert sorted(shown, key=int) == sorted(map(str, STEPS.flatten()), key=int)
    assert len([patch for patch in axes.patches if isinstance(patch, Circle)]) == STEPS.size
    between = [line for line in axes.lines if list(np.diff(line.get_ydata())) == [1.0]]
    assert len(between) == 2 * (1 + 2 + 3 + 4 + 5 + 6)
    assert all(line.get_xdata()[0] <= line.get_xdata()[1] for line in between), "no vector waits for a later position"


def test_the_cache_fills_from_the_left_and_each_panel_marks_what_is_new() -> None:
    axes = DRAWINGS["filling"]().axes
    states = [panel.collections[0].get_array().reshape(4, 9)[0].tolist() for panel in axes]
    assert states == [[2] * 5 + [0] * 4, [1] * 5 + [2] + [0] * 3, [1] * 6 + [2] * 2 + [0]]


def test_memory_is_drawn_on_logarithmic_scales_with_a_name_and_dashes_a_line() -> None:
    axes = DRAWINGS["memory"]().axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    for line, values in zip(axes.lines, LINES.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert len({line.get_linestyle() + line.get_color() for line in axes.lines}) == 3
    assert set(LINES) <= set(words(axes.figure))


def test_what_a_position_is_worth_is_a_bar_from_the_floor_and_the_largest_stands_out() -> None:
    axes = DRAWINGS["worth"]().axes[0]
    shown = bars(axes)
    tops = [bar.get_y() + bar.get_height() for bar in shown]
    np.testing.assert_allclose(tops, np.maximum(np.geomspace(3, 1e-6, 8), 1e-4))
    assert [to_hex(bar.get_facecolor()).upper() for bar in shown] == [style.CHOSEN] + [style.KEPT] * 7
    assert axes.get_ylim() == pytest.approx((1e-4, 10))
    assert [label.get_text() for label in axes.get_xticklabels()][:2] == ["␣Canberra", "↵"]


def test_a_mask_is_blue_where_it_is_true_and_its_rows_are_the_last_positions() -> None:
    figure = DRAWINGS["masks"]()
    for axes, mask in zip(figure.axes, (RIGHT, TOP_LEFT), strict=True):
        np.testing.assert_array_equal(axes.collections[0].get_array().reshape(3, 8), mask)
        assert [label.get_text() for label in axes.get_yticklabels()] == ["5", "6", "7"]
