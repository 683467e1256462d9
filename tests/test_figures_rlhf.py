"""The figures of chapter 09 show the arrays that they are given, and keep what `test_figures` asks of every figure."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from llm_internals.figures import rlhf as figures
from tests import test_figures
from tests.test_figures import AWKWARD, words

OBJECTIVE = np.array([0.34, 0.64, 0.73, 0.738])
PROBS = {" Canberra": np.array([0.34, 0.7, 0.97, 0.98]), "$x^2$": np.array([0.36, 0.1, 0.02, 0.015])}
EDGE = np.array([[0.0, 0.34], [0.3, 0.72], [0.9, 0.97], [1.08, 1.0]])
PATHS = {"β = 1": np.array([[0.0, 0.34], [0.12, 0.57]]), "β = 0.25": np.array([[0.0, 0.34], [0.96, 0.97]])}
BEST = {"β = 1": (0.13, 0.585), "β = 0.25": (0.9, 0.966)}
BEFORE, AFTER = np.linspace(0, 0.9, 8), np.linspace(0.9, 0, 8)
MOVED = {"trained": np.geomspace(1e-7, 2, 8), "logit bias": np.geomspace(1, 1e-9, 8)}
CHOSEN = np.array([[-5.0, -4.8], [-3.0, -2.2], [-1.9, -1.8]])
REJECTED = np.array([[-2.7, -8.0], [-3.0, -10.0], [-3.9, -12.0]])

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "climb": lambda: figures.climb(OBJECTIVE, 0.74, PROBS, {" Canberra": 0.966, "$x^2$": 0.019}),
    "frontier": lambda: figures.frontier(EDGE, PATHS, BEST),
    "shifts": lambda: figures.shifts([f"The capital of {n} is" for n in range(8)], AWKWARD, BEFORE, AFTER),
    "divergences": lambda: figures.divergences([f"The capital of {n} is" for n in range(8)], MOVED, floor=1e-4),
    "preferences": lambda: figures.preferences(["Paris.", "$Cold$."], CHOSEN, REJECTED),
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


def test_training_is_drawn_step_by_step_beside_what_it_should_reach() -> None:
    left, right = DRAWINGS["climb"]().axes
    assert left.lines[0].get_ydata().tolist() == OBJECTIVE.tolist()
    assert left.lines[1].get_ydata()[0] == 0.74
    assert [line.get_ydata().tolist() for line in right.lines[::2]] == [values.tolist() for values in PROBS.values()]
    assert [line.get_ydata()[0] for line in right.lines[1::2]] == [0.966, 0.019]
    assert right.get_ylim()[1] >= 1


def test_the_optimum_stays_inside_the_picture_even_if_training_began_above_it() -> None:
    axes = figures.climb(np.array([0.9, 0.95, 1.0]), 1.0, {}, {}).axes[0]
    assert axes.get_ylim()[0] < 0.9 < 1.0 < axes.get_ylim()[1]


def test_each_path_leads_to_the_ring_of_its_own_optimum() -> None:
    axes = DRAWINGS["frontier"]().axes[0]
    edge, *others = axes.lines
    assert edge.get_xydata().tolist() == EDGE.tolist()
    for path, ring, name in zip(others[::2], others[1::2], PATHS, strict=True):
        assert path.get_xydata().tolist() == PATHS[name].tolist()
        assert ring.get_xydata()[0].tolist() == list(BEST[name])
        assert path.get_color() == ring.get_markeredgecolor()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(PATHS)


def test_an_arrow_leads_from_before_to_after_and_its_colour_says_whether_up_or_down() -> None:
    axes = DRAWINGS["shifts"]().axes[0]
    arrows = [text for text in axes.texts if isinstance(text, Annotation) and text.arrow_patch is not None]
    assert [(arrow.xyann[0], arrow.xy[0]) for arrow in arrows] == list(zip(BEFORE, AFTER, strict=True))
    colors = {
        now > was: arrow.arrow_patch.get_edgecolor() for arrow, was, now in zip(arrows, BEFORE, AFTER, strict=True)
    }
    assert len(colors) == 2
    assert colors[True] != colors[False]
    assert {"␣Canberra", "↵"} <= set(words(axes.figure))


def test_a_probability_that_hardly_moved_has_a_ring_and_no_arrow() -> None:
    axes = figures.shifts(["a"], [" b"], np.array([0.5]), np.array([0.505])).axes[0]
    assert not any(isinstance(text, Annotation) and text.arrow_patch for text in axes.texts)
    assert [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"] == [0.5]


def test_what_moved_less_than_the_floor_stands_on_it_and_the_scale_says_so() -> None:
    figure = DRAWINGS["divergences"]()
    axes = figure.axes[0]
    for line, moved in zip(axes.lines, MOVED.values(), strict=True):
        assert line.get_xdata().tolist() == np.maximum(moved, 1e-4).tolist()
    assert "≤ 0.0001" in words(figure)


def test_each_pair_has_a_panel_with_both_answers() -> None:
    panels = DRAWINGS["preferences"]().axes
    assert [axes.get_title(loc="left") for axes in panels] == ["Paris.", "$Cold$."]
    for column, axes in enumerate(panels):
        assert axes.lines[0].get_ydata().tolist() == CHOSEN[:, column].tolist()
        assert axes.lines[1].get_ydata().tolist() == REJECTED[:, column].tolist()
        assert axes.lines[0].get_linestyle() != axes.lines[1].get_linestyle()
