"""The figures of chapter 05 show the arrays that they are given, and keep what `test_figures` asks of every figure."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from llm_internals.figures import sampling as figures
from llm_internals.figures.style import KEPT
from tests import test_figures
from tests.test_figures import AWKWARD, bars, words

TOYS = np.array([[0.5, 0.3, 0.2], [0.625, 0.375, 0.2]])
KEPT_TOYS = np.array([[True, True, True], [True, True, False]])
CURVES = {"sure": np.array([0.02, 0.96, 0.01, 0.01]), "unsure": np.array([0.3, 0.3, 0.2, 0.2])}
GRID = np.linspace(0.1, 3, 30)

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "shaping": lambda: figures.shaping(AWKWARD[:3], ["first", "second"], TOYS, KEPT_TOYS),
    "temperatures": lambda: figures.temperatures(
        ["one", "two"], [AWKWARD[:2], AWKWARD[2:4]], (0.5, 2), np.full((2, 2, 2), 0.25)
    ),
    "entropies": lambda: figures.entropies(GRID, {"sure": GRID / 3, "unsure": np.sqrt(GRID)}, 4.0),
    "mass_by_rank": lambda: figures.mass_by_rank(CURVES, p=0.9),
    "candidates_along": lambda: figures.candidates_along(AWKWARD, np.array([1, 700, 3, 1, 20, 9, 50, 2])),
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


def test_shaping_has_a_panel_a_step_and_hatches_what_a_step_removes() -> None:
    figure = DRAWINGS["shaping"]()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["first", "second"]
    for axes, values, stays in zip(figure.axes, TOYS, KEPT_TOYS, strict=True):
        assert [bar.get_width() for bar in bars(axes)] == pytest.approx(values)
        assert [bar.get_hatch() is None for bar in bars(axes)] == stays.tolist()
    assert words(figure).count("removed") == 1


def test_what_an_earlier_step_removed_has_neither_bar_nor_word() -> None:
    figure = figures.shaping([" a", " b"], ["x", "y"], np.array([[1.0, 0.0]] * 2), np.array([[True, False]] * 2))
    assert "removed" not in words(figure)


def test_temperatures_show_the_named_tokens_and_all_others_as_one() -> None:
    probs = np.array([[[0.5, 0.25], [0.125, 0.125]]])
    figure = figures.temperatures(["prompt"], [[" a", "\n"]], (0.5, 2), probs)
    assert [[bar.get_width() for bar in bars(axes)] for axes in figure.axes] == [
        pytest.approx([0.5, 0.25, 0.25]),
        pytest.approx([0.125, 0.125, 0.75]),
    ]
    assert all([bar.get_hatch() is None for bar in bars(axes)] == [True, True, False] for axes in figure.axes)
    assert {"␣a", "↵", "all others"} <= set(words(figure))
    assert figure.axes[0].get_title(loc="left") == "prompt\nT = 0.5"


def test_entropies_are_drawn_below_their_ceiling() -> None:
    axes = DRAWINGS["entropies"]().axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    np.testing.assert_array_equal(lines["sure"].get_ydata(), GRID / 3)
    assert axes.get_ylim()[1] > 4.0
    assert lines["sure"].get_linestyle() != lines["unsure"].get_linestyle()


def test_the_mass_is_summed_from_the_likeliest_and_cut_where_it_reaches_p() -> None:
    figure = DRAWINGS["mass_by_rank"]()
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    np.testing.assert_allclose(lines["sure"].get_ydata(), [0.96, 0.98, 0.99, 1.0])
    np.testing.assert_allclose(lines["unsure"].get_ydata(), [0.3, 0.6, 0.8, 1.0])
    assert {"1", "4", "p = 0.9"} <= {text.get_text() for text in figure.axes[0].texts}


def test_without_p_nothing_is_cut() -> None:
    assert len(figures.mass_by_rank(CURVES).axes[0].texts) == 0


def test_a_text_has_a_bar_a_token_as_high_as_its_candidates_are_many() -> None:
    axes = figures.candidates_along([" a", "b"], np.array([1, 300])).axes[0]
    assert [bar.get_height() for bar in bars(axes)] == [1, 300]
    assert [text.get_text() for text in axes.texts] == ["1", "300"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["␣a", "b"]
    assert {to_hex(bar.get_facecolor()) for bar in bars(axes)} == {KEPT.lower()}
