"""The token view in a browser, from disk: byte for byte the package's tokens, and anyone can work it.

The split asks which characters are letters, numbers and white space, so browser and package are compared on the code
points assigned in Unicode 14: both know these, whatever the version of each.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import regex
from playwright.sync_api import BrowserContext, Page

from llm_internals import show
from llm_internals.figures.labels import visible
from llm_internals.show.widgets import component
from llm_internals.tokenizer import UnencodableError
from tests.pages.test_interactive import written
from tests.reference_tokenizers import load_data, random_texts, unicode14, without_type_checks
from tools.browser import Visit, open_page, visit_page, watched_page
from tools.token_view_data import PATH

CASES = load_data("tokenizer_encode.json")["encode"]
STRANGE = ["\x04", "a\x04b", "été \x1d\x06", "\U00040000", "x\U000bffff", "\ud800", "ab\udfff\x04", "\x16\ud83d"]
"""What can't be encoded: missing bytes, unassigned code points, lone surrogates."""
DATA = {
    "text": " unbelievable",
    "examples": [["year", "In 2024"], ["code", "if x:\n    y"], ["byte 04", "a\x04b"], ["none", ""]],
}
ENCODE = """(source, texts) => {
    const { tokenizer, visible } = new Function(`${source}; return { tokenizer, visible };`)();
    const { encode, bytesOf } = tokenizer(window.vocabulary);
    return texts.map((text) => {
        try {
            const ids = encode(text).flat();
            return [ids, ids.map((id) => visible(bytesOf(id)))];
        } catch (error) {
            return error.message;
        }
    });
}"""
"""Runs the component's own functions on texts that no text field would hold, such as a lone carriage return."""


def page_with(folder: Path, *parts: show.Output) -> Path:
    """A page that says where its static files are, as those of the built book do."""
    path = written(folder, *parts)
    path.write_text(path.read_text(encoding="utf-8").replace("<html", "<html data-content_root='./'"), encoding="utf-8")
    (folder / "_static").mkdir(exist_ok=True)
    shutil.copy(PATH, folder / "_static")
    return path


def view(**settings: str) -> show.Output:
    """The part as the page has it."""
    caption, fallback = "Type a text.", "It takes the built book."
    return show.interactive("token_view", DATA, caption=caption, fallback=fallback, file=PATH.name, **settings)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, browser: BrowserContext) -> Iterator[Page]:
    """A page with two views."""
    path = page_with(tmp_path_factory.mktemp("view"), view(), view(id="second"))
    with watched_page(browser) as (opened, visit):
        open_page(opened, path)
        opened.wait_for_selector("#second li")
        opened.evaluate("(text) => { window.vocabulary = JSON.parse(text); }", stored_vocabulary())
        yield opened
    assert visit == Visit()


def stored_vocabulary() -> str:
    """The JSON in the stored script."""
    return PATH.read_text(encoding="utf-8").partition(".content = ")[2].rstrip().removesuffix(";")


def in_the_browser(page: Page, texts: list[str]) -> list:
    """For each text its ids and the tokens as shown, or the message of the error."""
    spelt = json.dumps(texts)  # lone surrogates get through as escapes
    return page.evaluate(
        f"([source, texts]) => ({ENCODE})(source, JSON.parse(texts))", [component("token_view"), spelt]
    )


def in_the_package(lm, texts: list[str]) -> list:
    """The same from the package."""
    found = []
    for text in texts:
        try:
            ids = lm.tokenizer.encode(text)
            found.append([ids, [visible(lm.tokenizer.token_bytes(id)) for id in ids]])
        except UnencodableError as error:
            found.append(str(error))
    return found


def chips(page: Page, part: str) -> list[tuple[str, str]]:
    """Text and id of each token on the page."""
    items = page.locator(f"#{part} li:not([aria-hidden])")
    return [tuple(item.locator(":scope > *").all_text_contents()) for item in items.all()]


# The tokenizer


def test_published_strings_have_their_published_ids(page: Page, lm) -> None:
    texts = [case["text"] for case in CASES]
    seen = in_the_browser(page, texts)
    assert seen == in_the_package(lm, texts)
    ids = [case["smollm2_ordinary"] for case in CASES if case["smollm2_lossless"]]
    assert [found[0] for found in seen if isinstance(found, list)] == ids


def test_fuzzed_strings_have_the_ids_and_the_look_that_the_package_gives_them(page: Page, lm) -> None:
    extra = [*lm.tokenizer.special_tokens, "\x04"]
    with without_type_checks():
        texts = list(random_texts(seed=5, count=4000, encodable=lambda part: True, extra=extra))
        expected = in_the_package(lm, texts)
    assert in_the_browser(page, texts) == expected
    assert 100 < sum(isinstance(found, str) for found in expected) < 1000, "some can't be encoded, most can"


def test_what_cannot_be_encoded_is_named_as_the_package_names_it(page: Page, lm) -> None:
    seen = in_the_browser(page, STRANGE)
    assert all(isinstance(found, str) for found in seen)
    assert seen == in_the_package(lm, STRANGE)


def test_browser_and_package_agree_on_the_kind_of_every_character_of_unicode_14(page: Page) -> None:
    characters = "".join(unicode14())
    here = [(name, regex.compile(pattern)) for name, pattern in {"l": r"\p{L}", "n": r"\p{N}", "s": r"\s"}.items()]
    there = {"l": r"\p{L}", "n": r"\p{N}", "s": r"\p{White_Space}"}
    seen = page.evaluate(
        """([text, patterns]) => {
            const kinds = Object.entries(patterns).map(([name, pattern]) => [name, new RegExp(pattern, "u")]);
            return [...text].map((one) => kinds.find(([, kind]) => kind.test(one))?.[0] ?? "-").join("");
        }""",
        [characters, there],
    )
    assert len(characters) > 280_000
    assert seen == "".join(next((name for name, kind in here if kind.match(one)), "-") for one in characters)


# The page


def test_it_shows_tokens_ids_and_counts(page: Page, lm) -> None:
    ids = lm.tokenizer.encode(" unbelievable")
    expected = [(visible(lm.tokenizer.token_bytes(id)), str(id)) for id in ids]
    assert chips(page, "token-view") == expected
    summary = page.locator("#token-view output").inner_text()
    assert summary == "13 characters (13 bytes) in 1 piece become 2 tokens, 6.50 characters a token."


def test_typing_and_examples_work_by_keyboard(page: Page) -> None:
    page.locator("#second textarea").fill("")
    page.keyboard.type("1 é\n")
    assert [text for text, _ in chips(page, "second")] == ["1", "␣é", "↵"]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert [text for text, _ in chips(page, "second")] == ["In", "␣", "2", "0", "2", "4"]
    assert page.locator("#second textarea").input_value() == "In 2024"


def test_a_part_keeps_its_state_while_the_other_changes(page: Page) -> None:
    page.locator("#second textarea").fill("x")
    assert len(chips(page, "token-view")) == 2


def test_an_error_takes_the_place_of_the_tokens(page: Page) -> None:
    page.locator("#second button", has_text="byte 04").click()
    message = "can't encode '\\x04' (U+0004, bytes 04) at position 1: byte 0x04 is not in the vocabulary"
    assert (page.locator("#second output").inner_text(), chips(page, "second")) == (message, [])


def test_no_text_has_no_tokens(page: Page) -> None:
    page.locator("#second button", has_text="none").click()
    assert page.locator("#second output").inner_text() == "0 characters (0 bytes) in 0 pieces become 0 tokens."


def test_the_longest_text_is_cut_while_one_types(page: Page) -> None:
    page.locator("#second textarea").fill("𒀀" * 500)
    assert page.evaluate("() => document.querySelectorAll('#second li').length") == 2000
    assert page.locator("#second textarea").get_attribute("maxlength") == "1000"


def test_a_page_with_two_views_is_good_in_light_dark_and_on_a_phone(tmp_path: Path, browser: BrowserContext) -> None:
    path = page_with(tmp_path, view(), view(id="second"))
    assert visit_page(browser, path) == Visit(violations={"light": [], "dark": []})


def test_where_the_file_is_out_of_reach_the_fallback_stays(tmp_path: Path, browser: BrowserContext) -> None:
    with watched_page(browser) as (opened, visit):
        open_page(opened, written(tmp_path, view()))
        assert opened.get_by_text("It takes the built book.").count() == 1
        assert opened.locator("textarea").count() == 0
        assert visit == Visit()
