"""The checks of pages, on small pages that are bad in one way each: a check that can't fail would prove nothing."""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from tools.browser import Visit, visit_page
from tools.built_pages import asks_a_host, broken, page_files

GOOD = "<p>Some words, and a <a href='other.html#place'>link</a>.</p>"


def written(folder: Path, body: str, head: str = "") -> Path:
    """A page with this body, beside another one that it can link to."""
    (folder / "other.html").write_text("<!doctype html><title>t</title><p id='place'>here</p>", encoding="utf-8")
    path = folder / "page.html"
    shell = f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>A page</title>{head}</head>"
    path.write_text(f"{shell}<body style='margin: 0'><main>{body}</main></body></html>", encoding="utf-8")
    return path


def visited(browser: BrowserContext, path: Path) -> Visit:
    """Open it as every page is opened."""
    return visit_page(browser, path)


def test_a_good_page_passes(tmp_path: Path, browser: BrowserContext) -> None:
    path = written(tmp_path, GOOD)
    assert visited(browser, path) == Visit(violations={"light": [], "dark": []})
    assert (asks_a_host(path), list(broken(path))) == ([], [])


def test_a_request_to_a_host_is_stopped_and_noticed(tmp_path: Path, browser: BrowserContext) -> None:
    path = written(tmp_path, "<script>fetch('https://example.invalid/late.json').catch(() => {})</script>")
    assert visited(browser, path).requests == ["https://example.invalid/late.json"]


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("<img alt='' src='https://example.invalid/a.png'>", ""),
        ("<script src='//example.invalid/a.js'></script>", ""),
        ("", "<link rel='stylesheet' href='https://example.invalid/a.css'>"),
        ("", "<style>@import 'https://example.invalid/a.css';</style>"),
        ("<p style='background: url(https://example.invalid/a.png)'>x</p>", ""),
    ],
)
def test_a_file_on_a_host_is_noticed_without_a_browser(tmp_path: Path, body: str, head: str) -> None:
    assert asks_a_host(written(tmp_path, body, head)) != []


def test_a_page_that_is_only_named_is_not_a_request(tmp_path: Path) -> None:
    body = "<a href='https://example.invalid/paper'>a paper</a>"
    assert asks_a_host(written(tmp_path, body, "<link rel='canonical' href='https://example.invalid/'>")) == []


@pytest.mark.parametrize(
    "script", ["console.error('wrong')", "throw new Error('wrong')", "Promise.reject(new Error('wrong'))"]
)
def test_an_error_in_a_script_is_noticed(tmp_path: Path, browser: BrowserContext, script: str) -> None:
    assert "wrong" in visited(browser, written(tmp_path, f"<script>{script}</script>")).errors[0]


def test_a_missing_file_is_noticed(tmp_path: Path, browser: BrowserContext) -> None:
    path = written(tmp_path, "<img alt='nothing' src='absent.png'>")
    assert [name.rsplit("/", 1)[1] for name in visited(browser, path).missing] == ["absent.png"]
    assert list(broken(path)) == ["absent.png: no such file"]


@pytest.mark.parametrize("target", ["absent.html", "other.html#nowhere", "#nowhere", "folder/"])
def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path, target: str) -> None:
    assert [problem.split(":")[0] for problem in broken(written(tmp_path, f"<a href='{target}'>x</a>"))] == [target]


def test_a_page_that_is_too_wide_for_a_phone_is_noticed(tmp_path: Path, browser: BrowserContext) -> None:
    path = written(tmp_path, "<div id='wide' style='width: 600px'>x</div>")
    assert "wide" in visited(browser, path).too_wide[0]


def test_words_that_can_not_be_read_in_one_scheme_are_noticed(tmp_path: Path, browser: BrowserContext) -> None:
    style = "<style>body { background: #fff } @media (prefers-color-scheme: dark) { p { color: #eee } }</style>"
    visit = visited(browser, written(tmp_path, GOOD, style))
    assert visit.violations["light"] == []
    assert visit.violations["dark"][0].startswith("color-contrast")


def test_a_picture_without_words_is_noticed(tmp_path: Path, browser: BrowserContext) -> None:
    visit = visited(browser, written(tmp_path, "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"))
    assert visit.violations["light"][0].startswith("image-alt")


def test_a_page_that_only_sends_one_on_is_no_page_and_its_target_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text('<meta http-equiv="Refresh" content="0; url=absent.html">', encoding="utf-8")
    assert page_files(tmp_path) == []
    assert list(broken(path)) == ["absent.html: no such file"]
