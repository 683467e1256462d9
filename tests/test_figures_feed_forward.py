"""The figures of chapter 03b show the arrays that they are given, and keep what `test_figures` asks of every figure."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

from llm_internals.figures import feed_forward as figures
from tests import test_figures
from tests.test_figures import bars, words

INPUTS = np.linspace(-6, 4, 11)
CONTEXTS = 2 ** np.arange(14)
COUNTS = {
    "feed-forward networks": np.full(14, 6.0),
    "attention, projections": np.full(14, 2.0),
    "output matrix": np.full(14, 2.0),
    "attention, scores and values": CONTEXTS * 0.003,
}
BITS = {"attention": np.array([4.0, 8.0, 3.4]), "feed-forward network": np.array([15.0, 4.0, 3.2])}
PEAKS = np.array([[4.0, 5.0, 6.0], [4.0, 5.0, 21.0]])

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "two_forms": lambda: figures.two_forms(576, 2304, 1536),
    "gate": lambda: figures.gate(
        INPUTS, {"ReLU": np.maximum(INPUTS, 0), "identity": INPUTS}, {3: 2.86, 1: 0.73, -1.25: -0.28}
    ),
    "work": lambda: figures.work(CONTEXTS, COUNTS),
    "activity": lambda: figures.activity(np.array([0.4, 0.7]), np.array([20.0, 400.0]), 1536),
    "silenced": lambda: figures.silenced(BITS, 3.3, 15.6),
    "pointed": lambda: figures.pointed(PEAKS, 4.3),
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


def test_the_matrices_are_drawn_to_scale_and_don_t_overlap() -> None:
    outlines = [patch for patch in bars(DRAWINGS["two_forms"]().axes[0]) if not patch.get_fill()]
    sizes = [(patch.get_width(), patch.get_height()) for patch in outlines]
    assert sizes == [(2304, 576), (576, 2304), (1536, 576), (1536, 576), (576, 1536)]
    boxes = [patch.get_bbox() for patch in outlines]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_the_gate_s_opening_is_the_slope_of_the_neuron() -> None:
    left, right = DRAWINGS["gate"]().axes
    np.testing.assert_array_equal(left.lines[0].get_ydata(), np.maximum(INPUTS, 0))
    slopes = [np.ptp(line.get_ydata()) / 6 for line in right.lines[:3]]
    assert slopes == pytest.approx([2.86, 0.73, 0.28])
    assert right.lines[2].get_ydata()[0] > 0 > right.lines[2].get_ydata()[1]
    assert [text.get_text() for text in right.texts] == ["gate 3", "gate 1", "gate −1.25"]


def test_the_bands_of_the_work_are_shares_of_the_whole() -> None:
    axes = DRAWINGS["work"]().axes[0]
    total = sum(COUNTS.values())
    top = 0
    for band, counts in zip(axes.collections, COUNTS.values(), strict=True):
        top = top + counts / total
        heights = {round(y, 9) for _, y in band.get_paths()[0].vertices}
        assert {round(y, 9) for y in top} <= heights
    assert top == pytest.approx(1)


def test_the_activity_of_each_block_is_a_bar_in_each_panel() -> None:
    upper, lower = DRAWINGS["activity"]().axes
    assert [bar.get_height() for bar in bars(upper)] == [0.4, 0.7]
    assert [bar.get_height() for bar in bars(lower)] == [20, 400]
    assert lower.get_ylabel() == "neurons of 1,536\nfor nine tenths"


def test_each_silenced_part_is_a_mark_between_the_two_lines() -> None:
    figure = DRAWINGS["silenced"]()
    marks = [line for line in figure.axes[0].lines if line.get_linestyle() == "None"]
    assert [line.get_ydata().tolist() for line in marks] == [values.tolist() for values in BITS.values()]
    assert len({line.get_marker() for line in marks}) == 2
    assert {"nothing silenced", "blind guessing"} <= set(words(figure))


def test_each_neuron_is_a_dot_in_its_block_and_the_median_a_dash() -> None:
    axes = DRAWINGS["pointed"]().axes[0]
    assert axes.collections[0].get_offsets().tolist() == [[b, peak] for b in range(2) for peak in PEAKS[b]]
    assert axes.lines[0].get_ydata().tolist() == [5, 5]
    assert axes.lines[1].get_ydata()[0] == 4.3
