"""Interactive parts in a browser, from disk: by keyboard, several on one page, and equal to the package's numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page

from llm_internals import drawing, show
from tools.browser import Visit, open_page, visit_page, watched_page

PIECES, SHARES = ["␣Sydney", "␣Canberra", "</script>"], [0.25, 0.625, 0.125]
DATA = {"bins": [{"piece": piece, "share": share} for piece, share in zip(PIECES, SHARES, strict=True)], "u": 0.5}
FALLBACK = show.table(
    [[piece, show.number(share, 3)] for piece, share in zip(PIECES, SHARES, strict=True)], ["token", "p"], "bins"
)
GRID = np.arange(0, 1000, 7) / 1000


def written(folder: Path, *parts: show.Output) -> Path:
    """A page that holds these outputs and nothing else."""
    path = folder / "page.html"
    body = "\n".join(part.html for part in parts)
    shell = "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Parts</title></head>"
    path.write_text(f"{shell}<body style='margin: 16px'><main>{body}</main></body></html>", encoding="utf-8")
    return path


def number_line(**settings: str) -> show.Output:
    """The number line with three tokens."""
    return show.interactive("number_line", DATA, caption="Move u.", fallback=FALLBACK, **settings)


@contextmanager
def shown(browser: BrowserContext, folder: Path, *parts: show.Output) -> Iterator[Page]:
    """A page of these parts, open; when it is left, it has asked for nothing, missed nothing and reported no error."""
    with watched_page(browser) as (opened, visit):
        open_page(opened, written(folder, *parts))
        yield opened
    assert visit == Visit()


@pytest.fixture
def page(tmp_path: Path, browser: BrowserContext) -> Iterator[Page]:
    """A page with two number lines."""
    with watched_page(browser) as (opened, _):
        open_page(opened, written(tmp_path, number_line(), number_line(id="second")))
        yield opened


def test_two_parts_on_one_page_make_no_error_and_no_request(tmp_path: Path, browser: BrowserContext) -> None:
    path = written(tmp_path, show.pipeline(5), number_line(), number_line(id="second"), show.tokens(["a"], [1]))
    assert visit_page(browser, path) == Visit(violations={"light": [], "dark": []})


def test_every_place_of_the_slider_hits_the_token_that_the_package_draws(page: Page) -> None:
    slider = page.locator("#second input")
    shown = []
    for u in GRID:
        slider.fill(str(u))
        shown.append(page.locator("#second output").inner_text().rsplit(" ", 1)[1])
    assert shown == [PIECES[drawing.draw(np.array(SHARES), float(u))] for u in GRID]
    assert page.locator("#number-line output").inner_text().startswith("u = 0.500 falls into 0.250 to 0.875")


def test_the_keyboard_moves_the_number(page: Page) -> None:
    page.locator("#number-line input").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#number-line input").get_attribute("aria-valuetext") == "0.501, ␣Canberra"


def test_the_fallback_goes_once_the_part_is_there(page: Page) -> None:
    assert page.locator("table").count() == 0


def test_the_fallback_stays_where_the_part_fails(tmp_path: Path, browser: BrowserContext) -> None:
    broken = show.interactive("number_line", {"bins": []}, caption="c", fallback=FALLBACK)
    with watched_page(browser) as (opened, visit):
        open_page(opened, written(tmp_path, broken))
        assert (opened.locator("table").count(), len(visit.errors)) == (1, 1)
