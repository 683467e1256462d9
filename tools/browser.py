"""Open built pages in headless Chromium, from disk, and report everything that a reader offline would miss."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, Request, Route, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LOCAL_SCHEMES = ("file:", "data:", "blob:")
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
AXE_OPTIONS = {"resultTypes": ["violations"], "preload": False}  # preloading would ask for style sheets
CONTRAST = ("color-contrast",)
CODE = ".highlight"
"""Coloured source, the same on all pages: one test looks at it, since it takes axe as long as all the rest."""
GRAVE = ("serious", "critical")


@dataclass
class Visit:
    """What one page did while it was open, as lines that can be read by a person; all empty for a good page."""

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    too_wide: list[str] = field(default_factory=list)
    violations: dict[str, list[str]] = field(default_factory=dict)


def find_chromium() -> str | None:
    """Path of a Chromium or Chrome on this machine, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


@contextmanager
def browser_context() -> Iterator[BrowserContext]:
    """A browser with a new, empty profile; closed and deleted on leaving."""
    chromium = find_chromium()
    if chromium is None:
        raise FileNotFoundError(f"no browser found; install one of: {', '.join(PROGRAMS)}")
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium, args=list(FLAGS), viewport=WIDE, color_scheme="light"
        )
        yield context
        context.close()


@contextmanager
def watched_page(context: BrowserContext) -> Iterator[tuple[Page, Visit]]:
    """A tab that lets no request out, with the `Visit` that fills up while the tab is used."""
    page, visit = context.new_page(), Visit()

    def keep_local(route: Route, request: Request) -> None:
        if request.url.startswith(LOCAL_SCHEMES):
            route.continue_()
        else:
            visit.requests.append(request.url)
            route.abort()

    page.route("**/*", keep_local)
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.on("console", lambda message: visit.errors.append(message.text) if message.type == "error" else None)
    page.on("requestfailed", lambda request: visit.missing.append(request.url))
    try:
        yield page, visit
    finally:
        page.close()


def open_page(page: Page, path: Path) -> None:
    """Load a page from disk and wait until its formulas are drawn."""
    page.goto(path.resolve().as_uri(), wait_until="load")
    page.wait_for_function("async () => { await window.MathJax?.startup?.promise; return true; }")


def set_scheme(page: Page, scheme: str) -> None:
    """Switch an open page to the "light" or "dark" colour scheme, as a reader's system setting does."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.wait_for_timeout(50)


def grave_violations(page: Page, rules: Sequence[str] = (), *, within: str = "main", without: str = CODE) -> list[str]:
    """What axe-core calls serious or critical in a part of the page: rule, element, reason.

    Parameters
    ----------
    page : Page
        An open page.
    rules : sequence of str
        The rules to hold it against; by default all.
    within, without : str
        CSS selectors of the parts to look at, and of the parts in them to leave out.
    """
    options = AXE_OPTIONS | ({"runOnly": list(rules)} if rules else {})
    parts = {"include": [[within]], "exclude": [[without]] if without else []}
    found = Axe().run(page, context=parts, options=options).response["violations"]
    return [
        f"{violation['id']}: {node['html'][:160]} ({violation['help']})"
        for violation in found
        if violation["impact"] in GRAVE
        for node in violation["nodes"]
    ]


def overflow(page: Page) -> list[str]:
    """The elements that make the page wider than the window, the innermost first."""
    return page.evaluate(
        """() => {
            const width = document.documentElement.clientWidth;
            if (document.scrollingElement.scrollWidth <= width) return [];
            const wide = [...document.querySelectorAll("main *")].filter(
                (element) => element.getBoundingClientRect().right > width + 1);
            return (wide.length ? wide : [document.body]).reverse().slice(0, 5).map(
                (element) => element.outerHTML.slice(0, 160));
        }"""
    )


def visit_page(context: BrowserContext, path: Path) -> Visit:
    """Open a page light, dark and narrow, and collect what went wrong; dark mode changes nothing but colours."""
    with watched_page(context) as (page, visit):
        page.set_viewport_size(WIDE)
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        open_page(page, path)
        visit.violations["light"] = grave_violations(page)
        set_scheme(page, "dark")
        visit.violations["dark"] = grave_violations(page, CONTRAST)
        page.set_viewport_size(NARROW)
        visit.too_wide = overflow(page)
    return visit
