"""Figures: they show the arrays that they are given, cope with any token, and read well in both colour schemes."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from llm_internals import chat, embedding, logits, model
from llm_internals.checkpoint import LanguageModel
from llm_internals.figures import one_response, pipeline_picture, style
from llm_internals.figures.style import to_png

STATIC = Path(__file__).parent.parent / "book" / "_static"
AWKWARD = [" Canberra", "\n", "<|im_end|>", "$x^2$", "\\frac", "_a_", "\t", "Ġé"]
LIGHT_PAGE, DARK_PAGE = "#ffffff", "#121212"
READABLE, VISIBLE = 4.5, 3.0
"""Contrast that WCAG 2.2 asks of text (1.4.3) and of parts of a picture (1.4.11)."""


def patterns(size: int) -> np.ndarray:
    """Rows of attention that each sum to 1, causal."""
    return np.tril(np.ones((size, size))) / np.arange(1, size + 1)[:, None]


def answer(chosen: list[int]) -> Figure:
    """Two steps with three candidates each."""
    probs = np.array([[0.6, 0.3, 0.05], [0.5, 0.4, 0.05]])
    candidates = [[" Canberra", " Sydney", " Perth"], [".", ",", "\n"]]
    pieces = [names[index] for names, index in zip(candidates, chosen, strict=True)]
    return one_response.answer(pieces, candidates, probs, chosen)


DRAWINGS: dict[str, Callable[[], Figure]] = {
    "prompt_vectors": lambda: one_response.prompt_vectors(AWKWARD, np.linspace(-1, 1, 8 * 60).reshape(8, 60)),
    "residual_norms": lambda: one_response.residual_norms(AWKWARD, np.geomspace(3, 900, 5 * 8).reshape(5, 8)),
    "attention_pattern": lambda: one_response.attention_pattern(AWKWARD, patterns(8)),
    "next_token": lambda: one_response.next_token(AWKWARD, np.linspace(0.4, 0.01, 8), chosen=3),
    "number_line": lambda: one_response.number_line(AWKWARD, np.full(8, 0.125), u=0.3, chosen=2),
    "answer": lambda: answer([0, 1]),
}
"""One call of each figure function."""


def bars(axes: Axes) -> list[Rectangle]:
    """The bars of a chart, in the order in which they were drawn."""
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def words(figure: Figure) -> list[str]:
    """All text on a figure, tick labels included."""
    labels = [label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()]
    return [text.get_text() for axes in figure.axes for text in axes.texts] + [label.get_text() for label in labels]


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21, as WCAG defines it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    """Relative luminance of a colour, as WCAG defines it."""
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


# All figures


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
def test_a_figure_is_as_wide_as_the_page_and_leaves_no_trace(draw: Callable[[], Figure]) -> None:
    before = dict(matplotlib.rcParams)
    figure = draw()
    assert figure.get_figwidth() == style.WIDTH
    assert (dict(matplotlib.rcParams), matplotlib._pylab_helpers.Gcf.get_all_fig_managers()) == (before, [])


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
def test_a_figure_spells_any_token_without_a_warning_and_is_the_same_bytes_every_time(
    draw: Callable[[], Figure],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert to_png(draw()) == to_png(draw())


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
def test_no_text_is_smaller_than_eleven_pixels_and_nothing_sticks_out(draw: Callable[[], Figure]) -> None:
    figure = draw()
    tight = figure.get_tightbbox()
    assert min(tight.x0, tight.y0, style.WIDTH - tight.x1, figure.get_figheight() - tight.y1) >= 0
    sizes = [text.get_fontsize() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    assert min(sizes) * style.PAGE_WIDTH / (72 * style.WIDTH) >= 11


# Each figure


def test_the_vectors_are_shown_cell_by_cell_on_a_scale_around_zero() -> None:
    vectors = np.linspace(-2, 1, 8 * 60).reshape(8, 60)
    figure = one_response.prompt_vectors(AWKWARD, vectors, first=16, rows=5)
    mesh = figure.axes[0].collections[0]
    np.testing.assert_array_equal(mesh.get_array().reshape(5, 16), vectors[:5, :16])
    assert mesh.get_clim() == (-2, 2)
    assert figure.axes[0].get_xlabel() == "dimension (the first 16 of 60)"


def test_the_first_and_the_last_token_stand_out_among_the_norms() -> None:
    norms = np.geomspace(3, 900, 5 * 8).reshape(5, 8)
    lines = one_response.residual_norms(AWKWARD, norms).axes[0].lines
    assert len(lines) == 8
    followed = {line.get_color(): line.get_ydata() for line in lines if line.get_color() != style.REMOVED}
    np.testing.assert_array_equal(followed[style.OTHER], norms[:, 0])
    np.testing.assert_array_equal(followed[style.KEPT], norms[:, -1])


def test_the_attention_map_shows_the_pattern_and_nothing_above_the_diagonal() -> None:
    pattern = patterns(8) + np.triu(np.full((8, 8), 0.5), 1)
    mesh = one_response.attention_pattern(AWKWARD, pattern).axes[0].collections[0]
    np.testing.assert_array_equal(mesh.get_array().reshape(8, 8), patterns(8))


def test_the_bars_are_the_probabilities_and_the_chosen_one_is_marked() -> None:
    figure = one_response.next_token(["a", "b"], np.array([0.7, 0.2]), chosen=1)
    shown = bars(figure.axes[0])
    np.testing.assert_allclose([bar.get_width() for bar in shown], [0.7, 0.2])
    assert [to_hex(bar.get_facecolor()).upper() for bar in shown] == [style.KEPT, style.CHOSEN]
    assert [word for word in words(figure) if "drawn" in word] == ["0.200   ◂ drawn"]


def test_the_number_line_lays_the_bins_end_to_end_and_marks_the_one_that_is_hit() -> None:
    figure = one_response.number_line([" Sydney", " Canberra"], np.array([0.32, 0.68]), u=0.771, chosen=1)
    shown = bars(figure.axes[0])
    np.testing.assert_allclose([(bar.get_x(), bar.get_width()) for bar in shown], [(0, 0.32), (0.32, 0.68)])
    assert to_hex(shown[1].get_facecolor()).upper() == style.CHOSEN
    assert {"u = 0.771", "␣Sydney", "␣Canberra"} <= set(words(figure))


@pytest.mark.parametrize("chosen", [0, 20, 39])
def test_of_many_narrow_bins_the_chosen_one_is_named_and_the_others_up_to_a_limit(chosen: int) -> None:
    names = [f"t{index}" for index in range(40)]
    figure = one_response.number_line(names, np.full(40, 1 / 40), u=(chosen + 0.5) / 40, chosen=chosen)
    named = set(words(figure)) & set(names)
    assert len(named) == one_response.HANGING
    assert names[chosen] in named


def test_the_answer_has_a_row_a_step_and_names_the_runner_up() -> None:
    figure = answer([0, 1])
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["␣Canberra", ","]
    drawn = [bar for bar in bars(figure.axes[0]) if to_hex(bar.get_facecolor()).upper() == style.CHOSEN]
    np.testing.assert_allclose([(bar.get_x(), bar.get_width()) for bar in drawn], [(0, 0.6), (0.5, 0.4)])
    assert {"␣Sydney 0.300", ". 0.500", "0.600", "0.400"} <= set(words(figure))


# Colours


@pytest.mark.parametrize("color", [style.INK, style.FAINT, style.KEPT])
def test_text_can_be_read_on_a_white_page(color: str) -> None:
    assert contrast(color, LIGHT_PAGE) >= READABLE


@pytest.mark.parametrize("color", [style.KEPT, style.CHOSEN, style.RIGHT])
def test_marks_can_be_seen_on_a_white_page(color: str) -> None:
    assert contrast(color, LIGHT_PAGE) >= VISIBLE


@pytest.mark.parametrize(("scheme", "page"), [("light", LIGHT_PAGE), ("dark", DARK_PAGE)])
def test_the_colours_of_the_pages_can_be_read_in_both_schemes(scheme: str, page: str) -> None:
    css = (STATIC / "book.css").read_text(encoding="utf-8")
    block = re.search(rf'html\[data-theme="{scheme}"\] {{(.*?)}}', css, re.DOTALL)
    assert block is not None
    colors = dict(re.findall(r"--llm-(\w+): (#\w+);", block[1]))
    named = {name: contrast(colors[name], page) for name in ("kept", "chosen", "right", "other", "removed")}
    assert min(named.values()) >= READABLE, named


# The picture of the way


def test_the_picture_in_the_book_is_the_one_that_the_code_draws() -> None:
    assert (STATIC / "pipeline.svg").read_text(encoding="utf-8") == pipeline_picture.picture()


@pytest.mark.parametrize("name", ["pipeline.svg", "logo.svg", "favicon.svg"])
def test_a_drawing_of_ours_is_well_formed_has_a_title_and_loads_nothing(name: str) -> None:
    text = (STATIC / name).read_text(encoding="utf-8")
    title = ElementTree.fromstring(text).find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text
    assert re.findall(r"(?:href|url\(|@import|<image|<script)", text) == []


def test_the_picture_shows_what_the_model_does_with_the_question(lm: LanguageModel) -> None:
    ids = lm.tokenizer.encode(pipeline_picture.PROMPT)
    assert tuple(ids) == pipeline_picture.IDS
    assert tuple(lm.tokenizer.decode([id]) for id in ids) == pipeline_picture.PIECES
    vectors = embedding.embed(torch.tensor(ids), lm.weights.embed_tokens)[:, :8].numpy()
    assert np.abs(vectors - np.array(pipeline_picture.VECTORS)).max() <= 0.0051


def test_the_picture_shows_the_scores_and_the_token_of_the_first_step(lm: LanguageModel) -> None:
    prompt = chat.encode_chat(lm.tokenizer, [{"role": "user", "content": pipeline_picture.PROMPT}])
    hidden = model.forward(torch.tensor(prompt), lm.weights)
    scores = logits.lm_head(hidden[-1:], lm.weights)[0]
    first = pipeline_picture.FIRST_SCORED
    shown = scores[first : first + len(pipeline_picture.SCORES)].numpy()
    assert np.abs(shown - np.array(pipeline_picture.SCORES)).max() <= 0.51
    assert int(scores.argmax()) == pipeline_picture.CHOSEN_ID
    assert lm.tokenizer.decode([pipeline_picture.CHOSEN_ID]) == pipeline_picture.CHOSEN_PIECE
    assert abs(float(scores.softmax(-1).max()) - pipeline_picture.CHOSEN_SHARE) <= 0.0051
    assert f"× {lm.config.num_hidden_layers}" in pipeline_picture.picture()
