"""The attention map in a browser, from disk: its weights are the package's, and anyone can work it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page

from llm_internals import show
from llm_internals.checkpoint import LanguageModel
from llm_internals.trace.attention_map import WEIGHT_ERROR
from tests.pages.test_interactive import written
from tools import attention_map_data
from tools.browser import NARROW, Visit, open_page, visit_page, watched_page

STORED = Path(__file__).parents[2] / "book" / "data" / "attention_map.json"
DATA = json.loads(STORED.read_text(encoding="utf-8"))
SEEN = 0.00501 + 3 * WEIGHT_ERROR
"""Two digits on the page, half a level in the file, and a level for another CPU."""
HEADS = [(0, 0), (2, 8), (14, 3), (16, 0), (18, 6), (18, 8), (23, 4), (29, 8)]
READ = """([id, prompt, layer, head]) => {
    const part = document.getElementById(id);
    const set = (control, value, event) => {
        control.value = value;
        control.dispatchEvent(new Event(event));
    };
    set(part.querySelector("select"), prompt, "change");
    set(part.querySelector("[name=layer]"), String(layer), "input");
    set(part.querySelector("[name=head]"), String(head), "input");
    const rows = [...part.querySelectorAll("[role=radio]")].map((name) => [...name.parentElement.children].slice(1));
    return rows.map((cells) => cells.map((cell) => Number(cell.title.split(": ").at(-1))));
}"""


def attention_map(**settings: Any) -> show.Output:
    """The part as the page has it."""
    return show.interactive("attention_map", DATA, caption="Pick a head.", fallback="Numbers.", **settings)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, browser: BrowserContext) -> Iterator[Page]:
    """A page with two maps."""
    path = written(tmp_path_factory.mktemp("map"), attention_map(), attention_map(id="second"))
    with watched_page(browser) as (opened, visit):
        open_page(opened, path)
        opened.wait_for_selector("#second [role=radio]")
        yield opened
    assert visit == Visit()


@pytest.mark.parametrize("name", attention_map_data.PROMPTS)
def test_its_weights_are_those_of_the_model(page: Page, lm: LanguageModel, name: str) -> None:
    exact = attention_map_data.patterns(lm, attention_map_data.PROMPTS[name])
    for layer, head in HEADS:
        rows = page.evaluate(READ, ["second", name, layer, head])
        assert [len(row) for row in rows] == list(range(1, len(rows) + 1))
        for reader, row in enumerate(rows):
            assert row == pytest.approx(exact[layer, head, reader, : reader + 1].tolist(), abs=SEEN)


def test_it_begins_at_the_first_place_and_says_what_the_head_sees(page: Page) -> None:
    said = page.locator("#attention-map output")
    assert said.get_attribute("aria-live") == "polite"
    assert said.locator("span").all_inner_texts() == [
        "␣is (position 4) looks at ␣Australia (position 3) 0.92, The (position 0) 0.06, ␣capital (position 1) 0.01.",
        "The strongest link of this head, the first token and the looking one aside: "
        "␣is (position 4) to ␣Australia (position 3), 0.92.",
        "Block 23, head 4; heads 3 to 5 share keys and values.",
    ]


def test_the_strongest_link_is_the_largest_weight_between_two_tokens_the_first_and_the_looking_one_aside(
    page: Page, lm: LanguageModel
) -> None:
    name = "twelve words, twice"
    exact = attention_map_data.patterns(lm, attention_map_data.PROMPTS[name])
    for layer, head in HEADS:
        page.evaluate(READ, ["second", name, layer, head])
        said = page.locator("#second output span").nth(1).inner_text()
        weights = np.tril(exact[layer, head], -1)[:, 1:]
        assert float(said.removesuffix(".").rsplit(", ", 1)[1]) == pytest.approx(float(weights.max()), abs=SEEN)


def test_every_button_leads_to_its_place(page: Page) -> None:
    for place in DATA["places"]:
        page.locator("#second").get_by_role("button", name=place["name"], exact=True).click()
        assert page.locator("#second select").input_value() == place["prompt"]
        assert page.locator("#second [name=layer]").input_value() == str(place["layer"])
        assert page.locator("#second [name=head]").input_value() == str(place["head"])
        chosen = page.locator("#second [aria-checked=true]").get_attribute("aria-label")
        assert chosen.endswith(f"position {place['token']}")


def test_the_keyboard_picks_block_head_and_token(page: Page) -> None:
    page.evaluate(READ, ["second", "twelve words, twice", 18, 6])
    page.locator("#second [name=layer]").press("ArrowLeft")
    page.locator("#second [name=head]").press("Home")
    page.locator("#second [aria-checked=true]").press("Home")
    page.keyboard.press("ArrowDown")
    said = page.locator("#second output").inner_text()
    assert said.startswith("␣apple (position 1) looks at")
    assert "Block 17, head 0; heads 0 to 2 share" in said
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "␣apple, position 1"
    for key in ("End", "ArrowDown", "PageDown"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "␣bread, position 23"
    assert page.locator("#second [role=radio][tabindex='0']").count() == 1, "the tokens are one stop of the tab key"


def test_a_click_into_a_row_picks_the_token_that_looks(page: Page) -> None:
    page.evaluate(READ, ["second", "The capital of Australia is", 23, 4])
    page.locator("#second [title^='␣of → The']").click()
    assert page.locator("#second output").inner_text().startswith("␣of (position 2) looks at The (position 0) 0.89")


def test_two_of_them_do_not_touch_each_other(page: Page) -> None:
    before = page.locator("#attention-map output").inner_text()
    page.locator("#second [name=head]").fill("2")
    assert page.locator("#attention-map output").inner_text() == before


def test_everyone_can_read_it_in_light_and_dark_and_on_a_phone(tmp_path: Path, browser: BrowserContext) -> None:
    data = DATA | {"places": DATA["places"][2:]}
    largest = show.interactive("attention_map", data, caption="Pick a head.", fallback="Numbers.")
    assert visit_page(browser, written(tmp_path, largest)) == Visit(violations={"light": [], "dark": []})


def test_on_a_phone_all_24_columns_fit_and_a_finger_hits_a_row(tmp_path: Path, browser: BrowserContext) -> None:
    with watched_page(browser) as (opened, _):
        opened.set_viewport_size(NARROW)
        open_page(opened, written(tmp_path, attention_map()))
        opened.get_by_role("button", name="after the last time").click()
        boxes = [cell.bounding_box() for cell in opened.locator("[aria-checked=true]").locator("xpath=../*").all()]
        assert len(boxes) == 1 + 21
        assert min(box["width"] for box in boxes) > 6
        assert boxes[0]["height"] >= 19
        assert opened.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_browser_that_cannot_unpack_the_weights_keeps_the_fallback(tmp_path: Path, browser: BrowserContext) -> None:
    path = written(tmp_path, attention_map())
    page_text = path.read_text(encoding="utf-8")
    path.write_text(page_text.replace("<main>", "<main><script>delete window.DecompressionStream</script>"), "utf-8")
    with watched_page(browser) as (opened, visit):
        open_page(opened, path)
        assert opened.get_by_text("Numbers.").count() == 1
        assert visit.errors == ["this browser can't unpack the weights"]
