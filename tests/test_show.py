"""What pages share: each output says what it was given, is well-formed and escaped, and the same bytes every time."""

import ast
import base64
import importlib
import json
import math
import struct
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import IPython.display
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from llm_internals import show
from llm_internals.figures import one_response
from llm_internals.figures.labels import visible
from llm_internals.figures.pipeline import STAGES
from llm_internals.figures.style import DOTS_PER_INCH, PAGE_WIDTH, WIDTH
from llm_internals.show.pictures import CaptionedFigure
from llm_internals.show.sources import without_docstrings

ROOT = Path(__file__).parent.parent
AWKWARD = "<b>&\"' </script> $x$ *y* `z` \\ é漢|"
PRINTABLE = st.text(st.characters(exclude_categories=["C"]), max_size=12)


def parsed(output: show.Output) -> ElementTree.Element:
    """The HTML form as a tree; fails if it isn't well-formed."""
    return ElementTree.fromstring(f"<root>{output.html}</root>")


def texts(output: show.Output, tag: str) -> list[str]:
    """What the elements of one kind hold, without their marks."""
    return ["".join(element.itertext()) for element in parsed(output).iter(tag)]


class Scripts(HTMLParser):
    """Collects what the script elements of a page hold, as a browser would cut them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.contents: list[str] = []
        self.inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script"
        self.contents += [""] * self.inside

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.contents[-1] += data


# Numbers


@pytest.mark.parametrize(
    ("x", "decimals", "text"),
    [
        (0.34127, 3, "0.341"),
        (25.33, 1, "25.3"),
        (-1.27, 1, "-1.3"),
        (-0.0004, 2, "0.00"),
        (7, 0, "7"),
        (np.float32(2.25), 2, "2.25"),
    ],
)
def test_a_number_is_rounded_to_its_decimals(x: float, decimals: int, text: str) -> None:
    assert show.number(x, decimals) == text


@pytest.mark.parametrize(
    ("x", "decimals"), [(0.3415, 3), (0.34159, 3), (0.34141, 3), (1.24995, 1), (0.125, 2), (-0.5, 0)]
)
def test_a_number_next_to_a_rounding_edge_is_refused(x: float, decimals: int) -> None:
    with pytest.raises(ValueError, match=r"lies within 0\.0001 of a rounding edge"):
        show.number(x, decimals)


@given(st.floats(-50, 50), st.integers(0, 3), st.floats(-1, 1))
def test_a_number_that_is_shown_keeps_its_digits_when_it_moves_by_the_noise(
    x: float, decimals: int, part: float
) -> None:
    try:
        text = show.number(x, decimals)
    except ValueError:
        assume(False)
    assert show.number(x + 0.999 * part * show.NOISE, decimals, noise=0.0) == text


def test_a_smaller_noise_lets_more_numbers_through() -> None:
    assert show.number(0.34159, 3, noise=1e-5) == "0.342"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: show.number(math.nan, 2), "x must be finite, but is nan"),
        (lambda: show.number(math.inf, 2), "x must be finite, but is inf"),
        (lambda: show.number(0.5, -1), "decimals must be 0 or more, but is -1"),
        (lambda: show.number(0.123, 4), "noise must be at least 0 and below 5e-05 for 4 decimals, but is 0.0001"),
        (lambda: show.number(0.123, 2, noise=-1.0), "noise must be at least 0"),
    ],
)
def test_what_cannot_be_promised_is_named(call: Callable[[], str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# Source


def test_source_is_the_source_under_the_name_of_its_file() -> None:
    output = show.source(visible)
    file = (ROOT / "llm_internals" / "figures" / "labels.py").read_text(encoding="utf-8")
    assert output.data["text/plain"] in file
    assert output.data["text/markdown"].startswith("`llm_internals/figures/labels.py`\n\n```python\ndef visible(")


def test_source_follows_a_change_of_the_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    shown = []
    for number in (1, 2):
        name = f"changing_module_{number}"
        (tmp_path / f"{name}.py").write_text(f"def f():\n    return {number}\n", encoding="utf-8")
        shown.append(show.source(importlib.import_module(name).f).data["text/plain"])
    assert shown == ["def f():\n    return 1", "def f():\n    return 2"]


def test_source_shows_classes_methods_modules_and_decorated_functions() -> None:
    assert show.source(show.Output).data["text/plain"].startswith("@dataclass(frozen=True)\nclass Output:")
    assert show.source(show.Output.__repr__).data["text/plain"].startswith("def __repr__(self)")
    assert show.source(one_response.answer).data["text/plain"].startswith("@styled\ndef answer(")
    assert show.source(show).data["text/markdown"].startswith("`llm_internals/show/__init__.py`")


def test_source_of_something_without_a_file_is_refused() -> None:
    with pytest.raises(ValueError, match="thing must be a function, class or module of a Python file"):
        show.source(len)


def test_no_source_carries_a_path_of_this_machine() -> None:
    assert str(ROOT) not in str(show.source(show.number).data)


def five_backticks() -> str:
    """Source with a fence in it."""
    return "`````"


def test_a_fence_is_longer_than_any_in_the_source() -> None:
    lines = show.source(five_backticks).data["text/markdown"].splitlines()
    assert (lines[2], lines[-1]) == ("``````python", "``````")


@pytest.mark.parametrize("path", sorted((ROOT / "llm_internals").rglob("*.py")), ids=lambda path: path.stem)
def test_docstrings_can_be_left_out_of_every_file_and_nothing_else_goes(path: Path) -> None:
    code = path.read_text(encoding="utf-8")
    expected = ast.parse(code)
    for node in ast.walk(expected):
        if (
            isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
            and ast.get_docstring(node)
            and len(node.body) > 1
        ):
            del node.body[0]
    assert ast.dump(ast.parse(without_docstrings(code))) == ast.dump(expected)


# Tables


@given(st.lists(st.tuples(PRINTABLE, PRINTABLE), max_size=4), PRINTABLE)
def test_every_cell_of_a_table_arrives_as_it_was_given(rows: list[tuple[str, str]], caption: str) -> None:
    output = show.table(rows, ["one", AWKWARD], caption)
    assert texts(output, "td") == [cell for row in rows for cell in row]
    assert (texts(output, "th"), texts(output, "caption")) == (["one", AWKWARD], [caption])


def test_columns_of_numbers_are_set_to_the_right() -> None:
    rows = [["a", "49,152", "0.34", "12 %", "–"], ["b", 7, "−1.5", "3%", "+2"]]
    output = show.table(rows, ["name", "n", "x", "share", "d"], "c")
    sides = [cell.get("style", "").split()[-1] for cell in parsed(output).iter("td")]
    assert sides == ["left", "right", "right", "right", "right"] * 2


def test_an_integer_is_written_without_separators() -> None:
    assert texts(show.table([[40136, np.int64(3)]], ["id", "n"], "c"), "td") == ["40136", "3"]


def test_header_cells_say_what_they_head() -> None:
    output = show.table([["a", 1]], ["name", "n"], "c", row_header=True)
    assert [cell.get("scope") for cell in parsed(output).iter("th")] == ["col", "col", "row"]
    region = parsed(output).find("div")
    assert region is not None
    assert (region.get("role"), region.get("aria-label"), region.get("tabindex")) == (
        "region",
        "c",
        "0",
    )


@pytest.mark.parametrize(
    ("rows", "align", "message"),
    [
        ([["a"]], None, "each row must have 2 cells"),
        ([["a", 0.5]], None, r"a cell must be text or an integer, but is 0.5: write a float as show.number"),
        ([["a", np.float32(1)]], None, "a cell must be text or an integer"),
        ([["a", 1]], "l", "align must be 2 letters out of l, c and r, but is 'l'"),
        ([["a", 1]], "lx", "align must be 2 letters"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(rows: list[list[Any]], align: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        show.table(rows, ["one", "two"], "c", align=align)


def test_flow_has_two_rows_with_a_name_each() -> None:
    output = show.flow(("text", "str"), (AWKWARD, "list of int [7]"))
    assert texts(output, "th") == ["comes in", "goes out"]
    assert texts(output, "td") == ["text", "str", AWKWARD, "list of int [7]"]


# Tokens


def test_tokens_show_every_character_and_the_id() -> None:
    output = show.tokens([" capital", "\n", "<|im_end|>", b"\xf0\x9f", "\t\u00a0\u200b"], [3575, 198, 2, 9, 11])
    assert texts(output, "code") == ["␣capital", "↵", "<|im_end|>", r"\xf0\x9f", "⇥⍽\\u200b"]
    assert texts(output, "span") == ["3575", "198", "2", "9", "11"]


def test_a_row_ends_after_a_token_that_ends_a_line() -> None:
    items = list(parsed(show.tokens(["user", "\n", "What"], [4093, 198, 1780])).iter("li"))
    assert [item.get("aria-hidden") for item in items] == [None, None, "true", None]


def test_neighbours_differ_in_shade_and_special_tokens_are_dashed() -> None:
    looks = [
        chip.get("style", "") for chip in parsed(show.tokens(["a", "b", "c"], [5, 6, 2], special_ids={2})).iter("code")
    ]
    assert looks[0] != looks[1]
    assert "dashed" not in looks[0] + looks[1]
    assert "dashed" in looks[2]


def test_tokens_and_ids_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="there are 2 pieces and 1 ids"):
        show.tokens(["a", "b"], [1])


@given(st.text())
def test_visible_text_is_printable_and_has_no_white_space(text: str) -> None:
    assert visible(text).isprintable()
    assert not any(character.isspace() for character in visible(text))


@given(PRINTABLE.filter(lambda text: text.isprintable() and " " not in text))
def test_visible_text_that_can_be_seen_anyway_stays_as_it_is(text: str) -> None:
    assert visible(text) == visible(text.encode()) == text


# Figures


def drawn() -> CaptionedFigure:
    """A small figure as a page shows it."""
    drawing = one_response.next_token(["The", "A"], np.array([0.9, 0.1]), chosen=0)
    return show.figure(drawing, name="fig-next-token", caption="Two *bars*.", alt="A long bar and a short one.")


def test_a_figure_carries_name_caption_and_alt_text() -> None:
    shown = drawn()
    assert shown.picture.metadata["figure"] == {
        "name": "fig-next-token",
        "caption": "Two *bars*.",
        "alt": "A long bar and a short one.",
    }
    assert shown.picture.data["text/plain"] == "A long bar and a short one."
    assert shown.caption.data["text/markdown"] == "Two *bars*."


def test_a_figure_is_a_png_of_the_page_s_width_and_the_same_bytes_every_time() -> None:
    first, second = (base64.b64decode(drawn().picture.data["image/png"]) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert b"Software" not in first
    assert struct.unpack(">I", first[16:20]) == (round(WIDTH * DOTS_PER_INCH),)
    assert drawn().picture.metadata["image/png"]["width"] == PAGE_WIDTH


def test_a_figure_displays_the_picture_and_then_its_caption(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed: list[show.Output] = []
    monkeypatch.setattr(IPython.display, "display", displayed.append)
    shown = drawn()
    shown._ipython_display_()
    assert displayed == [shown.picture, shown.caption]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "next-token"}, "name must be fig- and lower-case words"),
        ({"name": "fig-Next"}, "name must be fig- and lower-case words"),
        ({"caption": " "}, "caption must be one line of text"),
        ({"alt": "one\ntwo"}, "alt must be one line of text"),
    ],
)
def test_a_figure_without_a_proper_name_caption_or_alt_text_is_refused(changed: dict[str, str], message: str) -> None:
    drawing = one_response.next_token(["The"], np.array([0.9]), chosen=0)
    with pytest.raises(ValueError, match=message):
        show.figure(drawing, **{"name": "fig-a", "caption": "c", "alt": "a"} | changed)


# The strip


def test_the_strip_lights_the_stages_it_is_given() -> None:
    items = list(parsed(show.pipeline(4, 5)).iter("li"))
    assert [item.get("aria-current") for item in items] == [None] * 4 + ["step"] * 2 + [None] * 2
    assert repr(show.pipeline(4)).count("[") == 1


def test_the_strip_without_a_stage_lights_all() -> None:
    assert show.pipeline().html == show.pipeline(*range(1, 8)).html


def test_the_strip_links_to_the_notebooks_of_the_stages() -> None:
    links = [link.get("href") for link in parsed(show.pipeline(1)).iter("a")]
    assert links == [f"{stage.chapter}.ipynb" for stage in STAGES]


@pytest.mark.parametrize("stage", [0, 8, -1])
def test_a_stage_that_does_not_exist_is_refused(stage: int) -> None:
    with pytest.raises(ValueError, match=rf"stages must be out of 1 to 7, but are \[{stage}\]"):
        show.pipeline(stage)


# Interactive parts

BINS = {"bins": [{"piece": "a", "share": 0.5}, {"piece": "b", "share": 0.5}], "u": 0.25}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def part(data: Any = BINS, **changed: Any) -> show.Output:
    """The number line with some of its settings changed."""
    return show.interactive("number_line", data, **{"caption": "c", "fallback": "f"} | changed)


@given(JSON)
def test_data_arrives_in_the_page_as_it_was_given(data: Any) -> None:
    assert json.loads(Scripts(part([data, "</script><!--<script>"]).html).contents[0]) == [
        data,
        "</script><!--<script>",
    ]


def test_a_part_asks_no_host_and_is_the_same_every_time() -> None:
    assert part().html == part().html
    assert not any(mark in part().html for mark in ("http:", "https:", "//cdn", "import("))


def test_parts_on_one_page_have_ids_of_their_own() -> None:
    assert 'id="number-line"' in part().html
    assert 'id="second"' in part(id="second").html
    assert "number-line" not in part(id="second").html


def test_the_fallback_and_the_caption_are_escaped_and_a_table_may_be_the_fallback() -> None:
    assert "<b>" not in part(caption=AWKWARD, fallback=AWKWARD).html
    fallback = show.table([["a", "0.5"]], ["token", "share"], "the bins")
    assert fallback.html in part(fallback=fallback).html
    assert "the bins" in repr(part(fallback=fallback))


def test_a_part_with_a_file_loads_it_from_the_static_folder_of_the_page_and_from_nowhere_else() -> None:
    script = Scripts(part(file="x.js").html).contents[1]
    assert "file.src = `${folder}_static/x.js`" in script
    assert "dataset.content_root" in script
    assert "_static" not in part().html


def test_what_components_share_goes_before_the_one_that_uses_it_and_is_none_itself() -> None:
    script = Scripts(show.interactive("sampling_explorer", {}, caption="c", fallback="f").html).contents[1]
    assert 0 < script.index("const logitsOf =") < script.index("function mount(")
    assert "const logitsOf =" not in Scripts(part().html).contents[1]
    with pytest.raises(ValueError, match="name must be one of the components"):
        show.interactive("_explorer", {}, caption="c", fallback="f")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: show.interactive("../style", {}, caption="c", fallback="f"), r"name must be one of the components \["),
        (lambda: part({"x": math.nan}), "data must be plain JSON"),
        (lambda: part({"x": np.ones(2)}), "data must be plain JSON"),
        (lambda: part(id='x" onload="'), "id must be lower-case letters, digits and hyphens"),
        (lambda: part(file="../x.js"), "file must be lower-case letters, digits, hyphens and underscores with .js"),
    ],
)
def test_a_part_that_cannot_work_is_refused(call: Callable[[], show.Output], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
