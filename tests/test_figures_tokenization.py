"""The figures of chapter 01 show the tokens and counts that they are given."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

from llm_internals.figures import tokenization as figures
from llm_internals.figures.style import KEPT, PAGE_WIDTH, WIDTH, to_png

ROWS = [["a", "a", " ", "$", "x"], ["aa", " ", "$", "x"], ["aa", " $", "x"], ["aa $", "x"]]
PANELS = [(["2", "8"], ["7"], ["3", "5"]), (["28"], ["7"], ["35"])]
COUNTS = np.array([[10, 11], [30, 20], [98, 21]])

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "merges": lambda: figures.merges(ROWS, ["", "1", "2", "3"], ["", "7", "8", "_9_"], ("merge", "rank")),
    "sums": lambda: figures.sums(PANELS, ["one", "two"]),
    "language_cost": lambda: figures.language_cost(["English", "Greek", "Thai"], np.tile(COUNTS, 3)[:, :5], "abcde"),
}


def boxes(figure: Figure) -> list[tuple[int, float, bool]]:
    """Line, width in characters and whether it is in full colour, of every token that is drawn."""
    found = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyBboxPatch)]
    return [
        (
            round(-patch.get_y() - 0.36),
            round(patch.get_width() + 0.12, 6),
            to_hex(patch.get_facecolor()) == KEPT.lower(),
        )
        for patch in found
    ]


def words(figure: Figure) -> list[str]:
    """The texts of a figure in the order in which they were written."""
    return [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_a_figure_is_as_wide_as_the_page_and_the_same_bytes_every_time(draw: Callable[[], Figure]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw().get_figwidth() == WIDTH
        assert to_png(draw()) == to_png(draw())


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_no_text_is_smaller_than_eleven_pixels_and_nothing_sticks_out(draw: Callable[[], Figure]) -> None:
    figure = draw()
    tight = figure.get_tightbbox()
    assert min(tight.x0, tight.y0, WIDTH - tight.x1, figure.get_figheight() - tight.y1) >= 0
    sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text()]
    assert min(sizes) * PAGE_WIDTH / (72 * WIDTH) >= 11


def test_each_row_has_its_tokens_and_what_was_made_stands_out() -> None:
    assert boxes(DRAWINGS["merges"]()) == [
        *[(0, 1, False)] * 5,
        *[(1, 2, True), (1, 1, False), (1, 1, False), (1, 1, False)],
        *[(2, 2, False), (2, 2, True), (2, 1, False)],
        *[(3, 4, True), (3, 1, False)],
    ]


def test_rows_are_labelled_and_their_characters_can_be_seen() -> None:
    seen = words(DRAWINGS["merges"]())
    assert seen.count("␣") == seen.count("$") == len(ROWS)
    assert {"1", "2", "3", "7", "8", "_9_", "merge", "rank"} <= set(seen)


def test_sums_stand_with_the_units_below_each_other_and_the_last_token_in_colour() -> None:
    figure = DRAWINGS["sums"]()
    assert boxes(figure) == [
        *[(0, 1, False), (0, 1, True), (1, 1, True), (2, 1, False), (2, 1, True)],
        *[(0, 2, True), (1, 1, True), (2, 2, True)],
    ]
    rights = [round(patch.get_x() + patch.get_width(), 6) for patch in figure.axes[0].patches]
    assert len({rights[index] for index in (1, 2, 4)}) == 1
    assert len({rights[index] for index in (5, 6, 7)}) == 1


def test_the_cost_of_a_language_is_marked_for_each_vocabulary() -> None:
    figure = DRAWINGS["language_cost"]()
    axes = figure.axes[0]
    marks = [collection.get_offsets().data[:, 0].tolist() for collection in axes.collections[1:]]
    assert marks[:2] == COUNTS.T.tolist()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["English", "Greek", "Thai"]
    assert axes.lines[0].get_xdata()[0] == COUNTS[0, 0]
    assert axes.get_legend().get_texts()[0].get_text() == "a"
