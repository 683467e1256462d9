"""The built book and one browser for all tests in this folder, which run after the book was built."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from tools.browser import browser_context

SITE = Path(__file__).parents[2] / "_build" / "html"


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built book."""
    assert (SITE / "index.html").is_file(), "there is no built book: run `make book` first"
    return SITE


@pytest.fixture(scope="session")
def browser() -> Iterator[BrowserContext]:
    """One headless Chromium for the whole run."""
    with browser_context() as context:
        yield context
