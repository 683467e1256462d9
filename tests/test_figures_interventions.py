"""The figures of chapter 08: they show the numbers that they are given, and all of their text can be read."""

import warnings
from collections.abc import Callable

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from llm_internals.figures import interventions, style
from llm_internals.figures.interventions import Node
from llm_internals.figures.style import to_png

AWKWARD = [" cat", "\n", "$x^2$", "<|im_end|>"]
BEFORE = np.array([0.5, 0.3, 0.15, 0.05])
AFTER = {"logit bias": np.array([0.2, 0.1, 0.6, 0.1]), "top-k 1": np.array([1.0, 0, 0, 0]), "none": BEFORE, "b": BEFORE}
LEADS = np.array([[0.1, 3.0], [0.6, 4.0], [1.5, 7.2]])
PENALTIES = {"presence 1": np.array([0.0, 1.0, 1.0]), "frequency 0.9": np.array([0.0, 0.9, 1.8])}
STEPS = [["temperature", "top-k 50"], ["top-k 50", "temperature"]]
LEFT = np.array([[1000, 50], [50, 1]])
LEVELS = [
    [
        Node(text="the", parent=None, p=0.4, total=0.4, kept=True, greedy=True),
        Node(text="her", parent=None, p=0.35, total=0.35, kept=True, greedy=False),
    ],
    [
        Node(text="$x^2$", parent=0, p=0.4, total=0.16, kept=False, greedy=True),
        Node(text="eyes", parent=1, p=0.5, total=0.175, kept=True, greedy=False),
        Node(text="mouth", parent=1, p=0.2, total=0.07, kept=False, greedy=False),
    ],
]
LOGPROBS = {"greedy": np.array([-6.2]), "beam of 3": np.array([-7.1, -6.6, -6.9]), "T = 1": np.array([-17.0, -8.0])}
DRAWINGS: dict[str, Callable[[], Figure]] = {
    "effects": lambda: interventions.effects(AWKWARD, BEFORE, AFTER),
    "loop_leads": lambda: interventions.loop_leads(LEADS, PENALTIES),
    "funnels": lambda: interventions.funnels(["one", "other"], STEPS, LEFT, 1000),
    "beam_tree": lambda: interventions.beam_tree(LEVELS),
    "likelihoods": lambda: interventions.likelihoods(LOGPROBS, -6.2),
}
"""One call of each figure function."""
READABLE = {style.INK, style.FAINT}
"""The colours of text that are dark enough on white (tests/test_figures.py)."""


def words(axes: Axes) -> list[str]:
    """All text on a part of a figure."""
    return [text.get_text() for text in axes.texts]


def rectangles(axes: Axes) -> list[Rectangle]:
    """Bars and boxes, in the order in which they were drawn."""
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
def test_a_figure_is_the_same_bytes_every_time_and_spells_any_token_without_a_warning(draw: Callable) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert to_png(draw()) == to_png(draw())


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
def test_text_is_large_and_dark_enough_and_nothing_sticks_out(draw: Callable) -> None:
    figure = draw()
    tight = figure.get_tightbbox()
    assert figure.get_figwidth() == style.WIDTH
    assert min(tight.x0, tight.y0, style.WIDTH - tight.x1, figure.get_figheight() - tight.y1) >= 0
    texts = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    assert min(text.get_fontsize() for text in texts) * style.PAGE_WIDTH / (72 * style.WIDTH) >= 11
    assert {to_hex(text.get_color()).upper() for text in texts} <= READABLE


def test_every_effect_shows_the_distribution_before_and_after_and_says_what_is_ruled_out() -> None:
    panels = DRAWINGS["effects"]().axes
    for axes, (title, values) in zip(panels, AFTER.items(), strict=False):
        assert axes.get_title(loc="left") == title
        widths = [bar.get_width() for bar in rectangles(axes)]
        np.testing.assert_allclose(widths, [*values, *BEFORE])
    assert words(panels[1]) == ["1.00", "ruled out", "ruled out", "ruled out"]


def test_the_loop_shows_every_lead_the_smallest_of_each_round_and_the_penalties() -> None:
    axes = DRAWINGS["loop_leads"]().axes[0]
    lines = [line.get_ydata() for line in axes.lines]
    np.testing.assert_allclose(lines[:2], LEADS.T)
    np.testing.assert_allclose(lines[2], [0.1, 0.6, 1.5])
    np.testing.assert_allclose(lines[3:], list(PENALTIES.values()))
    assert words(axes) == ["frequency 0.9", "smallest lead", "presence 1"], "from the highest end to the lowest"


def test_names_of_lines_that_end_at_the_same_height_do_not_overlap() -> None:
    axes = interventions.loop_leads(LEADS, {"a": np.array([0, 1.5, 1.5]), "b": np.array([0, 1.0, 1.49])}).axes[0]
    heights = [text.xy[1] for text in axes.texts]
    assert -np.diff(heights).max() >= 0.04 * axes.get_ylim()[1]


def test_a_funnel_writes_every_count_and_quiets_a_step_that_removes_nothing() -> None:
    axes = DRAWINGS["funnels"]().axes[0]
    assert [word for word in words(axes) if word.replace(",", "").isdigit()] == ["1,000", "50", "50", "1"]
    quiet = [text.get_text() for text in axes.texts if to_hex(text.get_color()).upper() == style.FAINT]
    assert quiet == ["temperature"], "the second row's temperature comes last and removes 49 tokens"
    lengths = [bar.get_width() for bar in rectangles(axes)[1::2]]
    np.testing.assert_allclose(lengths, interventions.FULL * np.log(LEFT.ravel()) / np.log(1000))


def test_the_tree_frames_what_is_kept_and_follows_greedy_decoding() -> None:
    axes = DRAWINGS["beam_tree"]().axes[0]
    edges = [to_hex(box.get_edgecolor()).upper() for box in rectangles(axes)]
    assert edges == [style.KEPT, style.KEPT, style.OTHER, style.KEPT, style.REMOVED]
    lines = [to_hex(line.get_color()).upper() for line in axes.lines[:-1]]
    assert lines == [style.OTHER, style.KEPT, style.OTHER, style.KEPT, style.REMOVED]
    assert {"the", "0.4", "$x^2$", "0.16", "mouth", "0.07"} <= set(words(axes))


def test_a_branch_begins_at_its_parent() -> None:
    axes = DRAWINGS["beam_tree"]().axes[0]
    boxes, branches = rectangles(axes), axes.lines[:-1]
    right_edge = [(box.get_x() + box.get_width(), box.get_y() + box.get_height() / 2) for box in boxes]
    for branch, parent in zip(branches[2:], (0, 1, 1), strict=True):
        np.testing.assert_allclose((branch.get_xdata()[0], branch.get_ydata()[0]), right_edge[parent])


def test_every_text_is_a_dot_at_its_log_probability() -> None:
    axes = DRAWINGS["likelihoods"]().axes[0]
    mark, *rows = axes.lines
    assert list(mark.get_xdata()) == [-6.2, -6.2]
    for row, (dots, values) in enumerate(zip(rows, LOGPROBS.values(), strict=True)):
        np.testing.assert_allclose(dots.get_xdata(), np.sort(values))
        assert np.abs(np.asarray(dots.get_ydata()) - row).max() <= interventions.SPREAD + 1e-9
    assert [label.get_text() for label in axes.get_yticklabels()] == list(LOGPROBS)
