"""The stream stepper in a browser, from disk: at every step it shows what the package's detokenizer has shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from llm_internals import show
from llm_internals.detokenizer import StreamingDetokenizer
from llm_internals.figures.detokenization import Arrival, stepper
from llm_internals.tokenizer import train_bpe
from tools.browser import Visit, open_page, visit_page, watched_page

TOKENIZER = train_bpe("the theme", 259)
TEXTS = {"a family": ("👨‍👩‍👧‍👦 é\n the <b>", ()), "a stop string": ("is the they ab", ("the ab", "they "))}


def arrivals(text: str, stop: tuple[str, ...]) -> list[Arrival]:
    """What a detokenizer does with the tokens of a text."""
    detokenizer = StreamingDetokenizer(TOKENIZER, stop)
    return [
        Arrival(id, TOKENIZER.token_bytes(id), detokenizer.add(id), detokenizer.held, detokenizer.unfinished)
        for id in TOKENIZER.encode(text)
    ]


STREAMS = {name: arrivals(*case) for name, case in TEXTS.items()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A page that holds the stepper and nothing else."""
    data = {"streams": [stepper(name, stream) for name, stream in STREAMS.items()]}
    part = show.interactive("detokenizer_stepper", data, caption="Step through.", fallback="No scripts here.")
    file = tmp_path / "page.html"
    shell = "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Part</title></head>"
    file.write_text(f"{shell}<body style='margin: 16px'><main>{part.html}</main></body></html>", encoding="utf-8")
    return file


@pytest.fixture
def page(path: Path, browser: BrowserContext) -> Iterator[Page]:
    """The stepper in a tab."""
    with watched_page(browser) as (opened, _):
        open_page(opened, path)
        yield opened


def test_it_makes_no_error_and_no_request_and_can_be_used_by_everyone(path: Path, browser: BrowserContext) -> None:
    assert visit_page(browser, path) == Visit(violations={"light": [], "dark": []})


@pytest.mark.parametrize("name", STREAMS)
def test_every_step_shows_what_the_package_has_shown_and_what_waits(page: Page, name: str) -> None:
    page.locator("select").select_option(label=name)
    shown = ""
    for count, arrival in enumerate(STREAMS[name], start=1):
        page.get_by_role("button", name="Next token").click()
        shown += arrival.piece
        waits, text = page.locator("dd").all_text_contents()
        assert text == shown
        assert waits.endswith(arrival.unfinished.hex(" "))
        assert waits.startswith(arrival.held.replace(" ", "␣"))
        output = page.locator("output").inner_text()
        assert output.startswith(f"Token {count} of {len(STREAMS[name])}, id {arrival.id}, ")
        assert ("Waiting: nothing." in output) == (arrival.held == "" and arrival.unfinished == b"")
    assert page.locator("li[aria-current=step]").count() == 1


def test_the_keyboard_steps_forth_and_back_and_the_ends_hold(page: Page) -> None:
    def done() -> str:
        return page.locator("output").inner_text()[:10]

    back, forth = (page.get_by_role("button", name=name) for name in ("Back", "Next token"))
    back.focus()
    page.keyboard.press("Enter")
    assert (done(), back.get_attribute("aria-disabled")) == ("Nothing ha", "true")
    forth.focus()
    for _ in range(len(STREAMS["a family"]) + 3):
        page.keyboard.press("Space")
    assert (done(), forth.get_attribute("aria-disabled")) == (f"Token {len(STREAMS['a family'])} o"[:10], "true")
    back.focus()
    page.keyboard.press("Enter")
    assert done().startswith(f"Token {len(STREAMS['a family']) - 1}")
    page.get_by_role("button", name="Start again").click()
    assert done() == "Nothing ha"


def test_another_stream_starts_from_its_beginning(page: Page) -> None:
    page.get_by_role("button", name="Next token").click()
    page.locator("select").select_option(label="a stop string")
    assert page.locator("output").inner_text().startswith("Nothing has come yet")
    assert page.locator("li").count() == len(STREAMS["a stop string"])
