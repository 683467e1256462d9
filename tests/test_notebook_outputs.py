"""The Sphinx extension that makes figures and links of stored outputs, on cells as ``show`` stores them."""

from typing import Any

import numpy as np
import pytest

from llm_internals import show
from llm_internals.figures import one_response
from tools.sphinx_ext import notebook_outputs
from tools.sphinx_ext.notebook_outputs import caption_figures, resolve_links

PAGES = {"book/intro", "book/05_sampling"}


def stored(output: show.Output) -> dict[str, Any]:
    """An output as a notebook file has it."""
    return {"output_type": "display_data", "data": dict(output.data), "metadata": dict(output.metadata)}


def figure_cell(*more: dict[str, Any]) -> dict[str, Any]:
    """A code cell that has shown a figure."""
    drawing = one_response.next_token(["The"], np.array([0.9]), chosen=0)
    shown = show.figure(drawing, name="fig-a", caption="One *bar*.", alt="A bar.")
    return {"metadata": {"tags": ["hide-input"]}, "outputs": [stored(shown.picture), stored(shown.caption), *more]}


def test_a_figure_becomes_what_myst_nb_makes_a_numbered_figure_of() -> None:
    cell = figure_cell()
    caption_figures(cell, "book/page")
    assert cell["metadata"] == {
        "tags": ["hide-input"],
        "mystnb": {"figure": {"name": "fig-a", "caption": "One *bar*."}, "image": {"alt": "A bar."}},
    }
    assert [list(output["data"]) for output in cell["outputs"]] == [["image/png", "text/plain"]]


def test_a_cell_without_a_figure_stays_as_it_is() -> None:
    cell = {"metadata": {}, "outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}
    caption_figures(cell, "book/page")
    assert cell == {"metadata": {}, "outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}


def test_a_figure_that_shares_its_cell_with_a_table_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(notebook_outputs.LOGGER, "warning", lambda text, *values: warned.append(text % values))
    caption_figures(figure_cell({"output_type": "stream", "name": "stdout", "text": "x"}), "book/page")
    assert warned == []
    caption_figures(figure_cell(stored(show.table([["a"]], ["b"], "c"))), "book/page")
    assert warned == ["book/page: give the figure fig-a a code cell of its own"]


def test_links_of_the_strip_lead_to_pages_that_exist_and_the_others_are_plain_text() -> None:
    output = stored(show.pipeline(5))
    resolve_links(output, "book", PAGES)
    html = output["data"]["text/html"]
    assert html.count("<a href=") == 1
    assert '<a href="05_sampling.html"' in html
    assert ".ipynb" not in html
    assert "tokenize" in html


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<a href="05_sampling.ipynb#order">o</a>', '<a href="05_sampling.html#order">o</a>'),
        ('<a href="../book/intro.ipynb">i</a>', '<a href="../book/intro.html">i</a>'),
        ('<a href="absent.ipynb"><b>x</b></a>', "<b>x</b>"),
        ('<a href="https://example.org/a.ipynb">x</a>', '<a href="https://example.org/a.ipynb">x</a>'),
    ],
)
def test_only_links_to_notebooks_of_the_book_are_changed(html: str, expected: str) -> None:
    output = {"data": {"text/html": [html]}}
    resolve_links(output, "book", PAGES)
    assert "".join(output["data"]["text/html"]) == expected
