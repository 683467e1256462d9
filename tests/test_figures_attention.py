"""The figures of chapter 03a show the arrays that they are given, and keep what `test_figures` asks of every figure."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

from llm_internals.figures import attention as figures
from tests import test_figures
from tests.test_figures import AWKWARD, patterns, words

KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
VALUES = np.array([[10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
WEIGHTS = np.array([0.25, 0.25, 0.5])
PRODUCTS = np.linspace(-40, 32, 64).reshape(8, 8)
SCORES = np.where(np.tri(8, dtype=bool), PRODUCTS / 8, -np.inf)
MOVED = np.triu(np.full((31, 8), 0.2), 0) + np.eye(31, 8) * 0.5
HEADS = np.tile(patterns(8), (30, 9, 1, 1))
KINDS = np.linspace(0, 0.9, 270).reshape(30, 9)
LOSSES = np.array([3.4, 5.9, 7.8, 10.4, 12.0])

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "one_look": lambda: figures.one_look(np.array([2.0, 1.0]), KEYS, VALUES, WEIGHTS),
    "steps": lambda: figures.steps(AWKWARD, PRODUCTS, SCORES, patterns(8)),
    "reach": lambda: figures.reach(AWKWARD, {"one": MOVED, "$two$": MOVED}),
    "atlas": lambda: figures.atlas(HEADS, {(16, 0): "P", (3, 8): "S"}),
    "head_scores": lambda: figures.head_scores({"one": KINDS, "$two$": KINDS[::-1]}),
    "ablation": lambda: figures.ablation([0, 1, 2, 4, 8], LOSSES, np.full((3, 5), 3.4), 14.7, "these heads"),
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


def test_a_look_says_each_score_and_puts_the_output_at_the_mean_of_the_values() -> None:
    compare, mix = DRAWINGS["one_look"]().axes
    assert [text.get_text() for text in compare.texts if text.get_text()] == [
        "key 1: 2",
        "key 2: 1",
        "key 3: 3",
        "query",
    ]
    [output] = [line.get_xydata()[0] for line in mix.lines if line.get_marker() == "D"]
    assert output.tolist() == [7.5, 7.5]
    widths = [line.get_linewidth() for line in mix.lines if len(line.get_xydata()) == 2 and line.get_zorder() == 1]
    assert widths == pytest.approx([3.25, 3.25, 5.5])


def test_what_the_mask_takes_out_stays_empty() -> None:
    products, scaled, pattern = DRAWINGS["steps"]().axes[:3]
    assert [len(axes.texts) for axes in (products, scaled, pattern)] == [64, 36, 36]
    assert [axes.collections[0].get_array().count() for axes in (products, scaled, pattern)] == [64, 36, 36]
    assert pattern.texts[0].get_text() == "1.00"


def test_a_number_that_rounds_to_zero_has_no_sign() -> None:
    tiny = np.full((1, 1), -0.001)
    figure = figures.steps(["a"], tiny, tiny, np.ones((1, 1)))
    assert [axes.texts[0].get_text() for axes in figure.axes[:3]] == ["0", "0.0", "1.00"]


def test_a_vector_that_did_not_move_is_left_empty() -> None:
    for axes in DRAWINGS["reach"]().axes[:2]:
        shown = axes.collections[0].get_array().reshape(31, 8)
        np.testing.assert_array_equal(shown.mask, MOVED == 0)
    assert "␣Canberra" in words(DRAWINGS["reach"]())


def test_every_head_has_its_map_in_the_atlas_at_its_place() -> None:
    marked = HEADS.copy()
    marked[17, 3] = np.eye(8)
    figure = figures.atlas(marked, {(16, 0): "P"})
    first, second = (axes.images[0].get_array() for axes in figure.axes[:2])
    cell = 8 + 1
    assert first.shape == second.shape == (9 * cell, figures.BAND * cell)
    assert first.count() == second.count() == 9 * 15 * 36
    place = second[3 * cell : 3 * cell + 8, 2 * cell : 2 * cell + 8]
    np.testing.assert_array_equal(place.filled(0), np.eye(8))
    assert [text.get_text() for text in figure.axes[1].texts] == ["P"]
    assert len(figure.axes[0].texts) == 0


def test_blocks_that_fill_no_band_still_have_their_maps() -> None:
    figure = figures.atlas(HEADS[:17], {})
    assert [axes.images[0].get_array().count() for axes in figure.axes[:2]] == [9 * 15 * 36, 9 * 2 * 36]


def test_the_highest_score_of_each_kind_is_ringed() -> None:
    rings = [axes.lines[0].get_xydata()[0].tolist() for axes in DRAWINGS["head_scores"]().axes[:2]]
    assert rings == [[29.5, 8.5], [0.5, 8.5]]
    shown = DRAWINGS["head_scores"]().axes[0].collections[0].get_array().reshape(9, 30)
    np.testing.assert_array_equal(shown, KINDS.T)


def test_the_line_of_an_ablation_is_the_chosen_heads_and_every_draw_is_a_mark() -> None:
    axes = DRAWINGS["ablation"]().axes[0]
    drawn = {line.get_marker(): line.get_ydata() for line in axes.lines}
    np.testing.assert_array_equal(drawn["o"], LOSSES)
    assert sum(line.get_marker() == "x" for line in axes.lines) == 3
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1", "2", "4", "8"]
