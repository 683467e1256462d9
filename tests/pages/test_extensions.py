"""What the theme and the local Sphinx extensions do, seen in the built pages."""

import re
from pathlib import Path

from playwright.sync_api import BrowserContext

from tools.browser import CODE, CONTRAST, grave_violations, open_page, set_scheme, watched_page
from tools.built_pages import page_files


def text_of(site: Path, page: str) -> str:
    """A page's HTML."""
    return (site / "book" / f"{page}.html").read_text(encoding="utf-8")


def test_a_bold_term_of_a_chapter_leads_to_the_glossary(site: Path) -> None:
    assert re.search(
        r'<strong><a [^>]*href="glossary\.html#term-token">tokens</a></strong>', text_of(site, "00_one_response")
    )


def test_a_figure_has_a_number_a_caption_and_its_alt_text(site: Path) -> None:
    figures = re.findall(r'<figure [^>]*id="fig-.*?</figure>', text_of(site, "00_one_response"), re.DOTALL)
    assert figures
    for figure in figures:
        assert re.search(r'<img [^>]*alt="[^"]{20,}"', figure)
        assert re.search(r'caption-number">Fig\. \d+', figure)


def test_the_colours_of_code_can_be_read_in_both_schemes(site: Path, browser: BrowserContext) -> None:
    with watched_page(browser) as (page, _):
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        open_page(page, site / "book" / "00_one_response.html")
        for scheme in ("light", "dark"):
            set_scheme(page, scheme)
            assert grave_violations(page, CONTRAST, within=CODE, without="") == []


def test_formulas_are_drawn_from_the_built_files(site: Path, browser: BrowserContext) -> None:
    with watched_page(browser) as (page, visit):
        open_page(page, site / "book" / "notation.html")
        assert page.locator("main mjx-container svg").count() > 5
        assert page.locator("main mjx-merror").count() == 0
    assert (visit.requests, visit.errors, visit.missing) == ([], [], [])


def test_no_page_carries_scripts_that_would_run_code_on_a_server(site: Path) -> None:
    assert [path.name for path in page_files(site) if "thebe" in path.read_text(encoding="utf-8").lower()] == []


def test_the_references_are_a_list_whose_members_are_its_items(site: Path) -> None:
    page = text_of(site, "references")
    assert page.count('role="listitem"') > 5
    assert "doc-biblioentry" not in page
