"""Take a picture of a built page as a reader sees it.

python -m tools.screenshot _build/html/book/intro.html intro.png --dark --width 390
"""

import argparse
from pathlib import Path

from tools.browser import browser_context, open_page, watched_page


def screenshot(source: Path, target: Path, *, dark: bool = False, width: int = 1280, height: int | None = None) -> None:
    """Save the whole page, or its first `height` pixels, as a PNG."""
    with browser_context() as context, watched_page(context) as (page, visit):
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.set_viewport_size({"width": width, "height": height or 900})
        open_page(page, source)
        page.screenshot(path=target, full_page=height is None)
    for problem in visit.requests + visit.errors + visit.missing:
        print(f"problem: {problem}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Take a picture of a built page.")
    parser.add_argument("page", type=Path, help="an HTML file")
    parser.add_argument("picture", type=Path, help="the PNG to write")
    parser.add_argument("--dark", action="store_true", help="in the dark colour scheme")
    parser.add_argument("--width", type=int, default=1280, help="width of the window in pixels (default 1280)")
    parser.add_argument("--height", type=int, help="only the first so many pixels (default: the whole page)")
    arguments = parser.parse_args()
    if not arguments.page.is_file():
        parser.error(f"no such page: {arguments.page}; `make book` builds them")
    screenshot(arguments.page, arguments.picture, dark=arguments.dark, width=arguments.width, height=arguments.height)


if __name__ == "__main__":
    main()
