"""Leave out the scripts of sphinx-thebe, which Jupyter Book always loads.

They run cells on a remote server, which this book never does, and they are added twice, so that every page would log
``Identifier 'THEBE_JS_URL' has already been declared``.
"""

import re
from typing import Any

from sphinx.application import Sphinx

SETTINGS = re.compile(r'<script type="text/x-thebe-config">.*?</script>', re.DOTALL)


def is_thebe(asset: Any) -> bool:
    """Whether a script or style sheet of the page belongs to thebe: by file name or by the inline text."""
    inline = getattr(asset, "attributes", {}).get("body") or ""
    return "thebe" in str(getattr(asset, "filename", asset)) or "thebe" in inline.lower()


def drop_thebe(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Take thebe's files out of what the page will load, and its settings out of the text."""
    for kind in ("script_files", "css_files"):
        context[kind] = [asset for asset in context[kind] if not is_thebe(asset)]
    if "body" in context:
        context["body"] = SETTINGS.sub("", context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Run after the theme and the extensions have added their files."""
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
