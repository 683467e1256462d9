"""The figures of chapter 11 show the arrays that they are given, and keep what `test_figures` asks of every figure."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from llm_internals.figures import four_bits as figures
from tests import test_figures
from tests.test_figures import bars, words

ENGINES = Path(__file__).parents[1] / "book" / "data" / "engines.json"
GROUP = (np.array([-1.0, -0.36, 2.0]), np.linspace(-1, 2, 16), np.array([-1.0, -0.4, 2.0]))
BLOCK = bytes.fromhex("4f2800b5be088988b3b998a55c7368455cb6d8fc")
INTEGERS = np.array([byte & 15 for byte in BLOCK[4:]] + [byte >> 4 for byte in BLOCK[4:]])
RUNS = {"step, float32": (0.25, 9e8), "step, packed": (1.3, 1.2e9), "prefill": (30.0, 1.1e10)}

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "ladders": lambda: figures.ladders({"calm": GROUP, "$far$ out": GROUP}),
    "file_map": lambda: figures.file_map(
        {"before": 1_785_664, "tokens": 30_081_024, "layers": 66_495_744},
        {"header": 24, "metadata": 1_769_483, "table": 16_157},
    ),
    "block": lambda: figures.block(BLOCK, INTEGERS, INTEGERS * 0.034 - 0.3125),
    "integers_and_steps": lambda: figures.integers_and_steps(np.full(16, 1 / 16), np.geomspace(0.004, 0.8, 5000)),
    "damage": lambda: figures.damage(
        ["8 bits, whole columns", "4 bits"], np.array([8.1, 5.0]), np.array([0.003, 0.4]), np.array([1.0, 0.7])
    ),
    "roofline": lambda: figures.roofline(7e9, 1.5e10, RUNS),
    "engines": lambda: figures.engines(
        ["slow", "fast"], np.array([55.0, 8.7]), np.array([[53.0, 58.0], [8.4, 9.2]]), np.array([27.0, 4.8])
    ),
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


def test_each_weight_moves_to_the_level_that_it_was_given() -> None:
    axes = DRAWINGS["ladders"]().axes[0]
    hollow, *moves, filled = (line.get_xydata() for line in axes.lines[1:])
    np.testing.assert_array_equal(hollow[:, 0], GROUP[0])
    np.testing.assert_array_equal(filled[:, 0], GROUP[2])
    assert [move[:, 0].tolist() for move in moves] == [[-1, -1], [-0.36, -0.4], [2, 2]]
    assert len(axes.collections[0].get_segments()) == 16


def test_the_parts_of_the_file_are_to_scale_and_end_to_end() -> None:
    figure = DRAWINGS["file_map"]()
    rows = [bar for bar in bars(figure.axes[0]) if bar.get_y() == 1.5]
    assert [bar.get_x() for bar in rows[1:]] == pytest.approx([bar.get_x() + bar.get_width() for bar in rows[:-1]])
    assert rows[1].get_width() / rows[0].get_width() == pytest.approx(30_081_024 / 1_785_664)
    assert {"the whole file: 98,362,432 bytes", "header\n24 bytes", "table\n16.2 kB"} <= set(words(figure))


def test_the_block_shows_its_bytes_digit_by_digit_and_its_integers_in_order() -> None:
    figure = DRAWINGS["block"]()
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert "".join(shown[:40]) == BLOCK.hex()
    assert shown[40:72] == [str(integer) for integer in INTEGERS]
    np.testing.assert_allclose(figure.axes[1].collections[1].get_offsets()[:, 1], INTEGERS * 0.034 - 0.3125)


def test_a_block_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="must be the 20 bytes of a Q4_1 block, but has 19"):
        figures.block(BLOCK[:19], INTEGERS, INTEGERS * 1.0)


def test_every_integer_has_a_bar_and_every_step_is_counted() -> None:
    left, right = DRAWINGS["integers_and_steps"]().axes
    assert [bar.get_height() for bar in bars(left)] == pytest.approx([6.25] * 16)
    assert sum(bar.get_height() for bar in bars(right)) == 5000
    assert right.lines[0].get_xdata()[0] == pytest.approx(np.sqrt(0.004 * 0.8), rel=1e-2)


def test_each_way_to_round_stands_at_its_bits_in_both_panels() -> None:
    left, right = DRAWINGS["damage"]().axes
    assert left.lines[0].get_xydata().tolist() == [[8.1, 0.003], [5.0, 0.4]]
    assert right.lines[0].get_xydata().tolist() == [[8.1, 100.0], [5.0, 70.0]]


def test_the_roof_is_the_smaller_of_both_limits_and_runs_lie_where_they_were_measured() -> None:
    axes = DRAWINGS["roofline"]().axes[0]
    intensity, roof = axes.lines[0].get_data()
    np.testing.assert_allclose(roof, np.minimum(intensity * 7, 15))
    points = [line.get_xydata()[0].tolist() for line in axes.lines[2:]]
    assert points == [[x, y / 1e9] for x, y in RUNS.values()]


def test_a_bar_is_as_long_as_a_step_and_dark_as_far_as_memory_goes() -> None:
    figure = DRAWINGS["engines"]()
    whole, dark = bars(figure.axes[0])[:2], bars(figure.axes[0])[2:4]
    assert [bar.get_width() for bar in whole] == [55.0, 8.7]
    assert [bar.get_width() for bar in dark] == [27.0, 4.8]
    assert {"55 ms, memory alone 27 ms", "8.7 ms, memory alone 4.8 ms"} <= set(words(figure))


def test_the_stored_times_of_engines_have_the_form_that_the_page_reads() -> None:
    stored = json.loads(ENGINES.read_text(encoding="utf-8"))
    assert {"date", "cpu", "kernels"} <= set(stored)
    assert stored["threads"] >= 1
    assert stored["bandwidth_gb_s"]["median"] > 0
    assert {"float32", "packed", "file"} <= set(stored["bytes_a_token"])
    assert {"transformers", "ours, float32", "ours, packed"} <= set(stored["engines"])
    for engine in stored["engines"].values():
        step = engine["decode_ms"]
        assert 0 < step["low"] <= step["median"] <= step["high"]
