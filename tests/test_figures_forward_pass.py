"""The figures of chapter 03 show the arrays that they are given, and keep what `test_figures` asks of every figure."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from llm_internals.figures import forward_pass as figures
from llm_internals.figures.style import CHOSEN, KEPT, SOFT
from tests import test_figures
from tests.test_figures import AWKWARD, bars, words

SHAPES = {
    **dict.fromkeys(("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out"), (7, 20)),
    **dict.fromkeys(("ln1.normalized", "ln2.normalized"), (7, 20)),
    **dict.fromkeys(("mlp.pre", "mlp.pre_linear", "mlp.post"), (7, 60)),
    **dict.fromkeys(("attn.q", "attn.rot_q", "attn.z"), (4, 7, 5)),
    **dict.fromkeys(("attn.k", "attn.rot_k", "attn.v"), (2, 7, 5)),
    **dict.fromkeys(("attn.attn_scores", "attn.pattern"), (4, 7, 7)),
}
CHANGE = np.array([[0.0, 0.9, 0.0], [0.0, 0.8, 0.1], [0.0, 0.5, 0.3]])
LENGTHS = np.array([[3.0, 700.0, 22000.0], [3.0, 60.0, 90.0]])
VECTORS = np.array([[1.0, -20000.0, 30.0, 0.5], [2.0, 90.0, -3.0, 0.01]])
BITS = np.array([16.1, 3.5, 3.1, 3.2, 3.3, 4.0, 5.0, 6.0])

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "one_block": lambda: figures.one_block(SHAPES),
    "shares": lambda: figures.shares({"before": np.full(9, 0.3), "behind": np.geomspace(1e-9, 0.7, 9)}),
    "spread": lambda: figures.spread(AWKWARD[:3], CHANGE),
    "written": lambda: figures.written(["first $x$", "last"], LENGTHS, np.stack([LENGTHS / 2, LENGTHS / 3])),
    "numbers_of_vectors": lambda: figures.numbers_of_vectors(["first $x$", "last"], VECTORS, [1, 2]),
    "blocks_removed": lambda: figures.blocks_removed(BITS, 3.3, 15.6, AWKWARD),
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


def test_the_block_names_every_activation_with_its_shape() -> None:
    drawn = " ".join(words(DRAWINGS["one_block"]())).replace("\n", " ")
    for name, shape in SHAPES.items():
        short = name.removeprefix("attn.")
        assert short in drawn
        assert f"[{', '.join(map(str, shape))}]" in drawn
    assert drawn.count("[7, 20]") == 7


def test_the_boxes_of_the_block_with_learned_weights_are_filled() -> None:
    axes = DRAWINGS["one_block"]().axes[0]
    filled = [
        box for box in axes.patches if isinstance(box, FancyBboxPatch) and to_hex(box.get_facecolor()) == SOFT.lower()
    ]
    assert len(filled) == 2 + 4 + 3 + 1, "norms, attention, feed-forward network, and the legend"


def test_a_share_keeps_its_value_and_its_scale_reads_as_powers_of_ten() -> None:
    figure = DRAWINGS["shares"]()
    np.testing.assert_array_equal(figure.axes[0].lines[1].get_ydata(), np.geomspace(1e-9, 0.7, 9))
    assert {"1", "10⁻⁸"} <= set(words(figure))


def test_only_what_has_not_changed_at_all_is_hatched() -> None:
    axes = DRAWINGS["spread"]().axes[0]
    np.testing.assert_array_equal(axes.collections[0].get_array().reshape(3, 3), CHANGE.T)
    hatched = {(int(cell.get_y()), int(cell.get_x())) for cell in axes.patches if cell.get_hatch()}
    assert hatched == {(0, 0), (0, 1), (0, 2), (2, 0)}


def test_both_parts_and_the_stream_are_lines_in_the_panel_of_their_token() -> None:
    first, last = DRAWINGS["written"]().axes
    for axes, lengths in ((first, LENGTHS[0]), (last, LENGTHS[1])):
        drawn = [line.get_ydata() for line in axes.lines]
        np.testing.assert_allclose(drawn, [lengths, lengths / 2, lengths / 3])


def test_the_numbers_of_each_vector_are_dots_without_signs_and_the_named_ones_are_labelled() -> None:
    figure = DRAWINGS["numbers_of_vectors"]()
    for axes, vector in zip(figure.axes, VECTORS, strict=True):
        np.testing.assert_array_equal(axes.collections[0].get_offsets()[:, 1], np.abs(vector))
        assert [text.get_text() for text in axes.texts] == ["1", "2"]


def test_a_block_that_costs_more_than_blind_guessing_stands_out() -> None:
    figure = DRAWINGS["blocks_removed"]()
    shown = bars(figure.axes[0])
    assert [bar.get_width() for bar in shown] == pytest.approx(BITS)
    assert [to_hex(bar.get_facecolor()).upper() for bar in shown] == [CHOSEN] + [KEPT] * 7
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [3.3, 15.6]
    assert {"␣Canberra", "↵", "<|im_end|>", "all blocks", "blind guessing"} <= set(words(figure))
