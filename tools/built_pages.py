"""Read the built pages as files: their ids, their links, and everything that they would load."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {
    "img": "src",
    "script": "src",
    "link": "href",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
}
NOT_LOADED = frozenset({"canonical", "next", "prev", "search", "index", "author", "license"})
"""Values of ``rel`` with which a ``<link>`` names another page and loads nothing."""
CSS_URL = re.compile(r"(?:@import\s+|url\()\s*['\"]?(https?:)?//", re.IGNORECASE)


@dataclass
class PageFile(HTMLParser):
    """What one HTML file says: ids to jump to, links, files that it loads, and whether it sends one elsewhere."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    redirects: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag refers to."""
        values = {name: value or "" for name, value in attrs}
        self.ids.update(filter(None, (values.get("id"), values.get("name") if tag == "a" else None)))
        if tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            self.redirects = True
            self.links.append(values.get("content", "").partition("url=")[2])
        elif tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif (target := values.get(LOADING.get(tag, ""))) and not NOT_LOADED & set(values.get("rel", "").split()):
            self.loads.append(target)


@cache
def parsed(path: Path) -> PageFile:
    """An HTML file, read once."""
    page = PageFile()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def page_files(site: Path) -> list[Path]:
    """All pages of a built book that a reader can stay on."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts and not parsed(path).redirects)


def outside(target: str) -> bool:
    """Whether an address is on a host."""
    return urlsplit(target).scheme in {"http", "https"} or target.startswith("//")


def asks_a_host(path: Path) -> list[str]:
    """What a page would load from a host, in the file or in its style sheets."""
    sheets = [path.parent / clean(target) for target in parsed(path).loads if clean(target).endswith(".css")]
    texts = [path.read_text(encoding="utf-8")] + [
        sheet.read_text(encoding="utf-8") for sheet in sheets if sheet.is_file()
    ]
    styles = [found[0] for text in texts for found in CSS_URL.finditer(text)]
    return [target for target in parsed(path).loads if outside(target)] + styles


def clean(target: str) -> str:
    """A link without query and anchor, as the name of a file."""
    return unquote(urlsplit(target).path)


def broken(path: Path) -> Iterator[str]:
    """Links and loaded files of a page that lead to no file, or to no place in it."""
    page = parsed(path)
    for target in page.links + page.loads:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        file = path.parent / clean(target) if parts.path else path
        if not file.is_file():
            yield f"{target}: no such file"
        elif parts.fragment and file.suffix == ".html" and unquote(parts.fragment) not in parsed(file).ids:
            yield f"{target}: no such place on that page"
