"""Every page of the built book, as a reader opens it: from disk, with no network, in light and in dark, on a phone."""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from tools.browser import Visit, visit_page
from tools.built_pages import asks_a_host, broken, page_files

SITE = Path(__file__).parents[2] / "_build" / "html"
NAMES = [path.relative_to(SITE).as_posix() for path in page_files(SITE)]


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in NAMES])
def page(request: pytest.FixtureRequest, site: Path) -> Path:
    """One page after the other."""
    return site / request.param


@pytest.fixture(scope="module")
def visit(page: Path, browser: BrowserContext) -> Visit:
    """What happened while the page was open."""
    return visit_page(browser, page)


def test_there_are_pages(site: Path) -> None:
    assert {"book/intro.html", "book/glossary.html", "search.html"} <= set(NAMES)


def test_no_file_of_the_page_lies_on_a_host(page: Path) -> None:
    assert asks_a_host(page) == []


def test_every_link_leads_to_a_place_that_is_there(page: Path) -> None:
    assert list(broken(page)) == []


def test_the_open_page_asks_no_host(visit: Visit) -> None:
    assert visit.requests == []


def test_the_open_page_logs_no_error_and_finds_every_file(visit: Visit) -> None:
    assert visit.errors + visit.missing == []


def test_a_phone_shows_the_page_without_scrolling_sideways(visit: Visit) -> None:
    assert visit.too_wide == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_read_the_page(visit: Visit, scheme: str) -> None:
    assert visit.violations[scheme] == []
