"""Let screen readers read the references as a list.

docutils marks them as a list whose members have the role ``doc-biblioentry``, which is no member of a list in ARIA:
axe-core calls that critical. With the role ``listitem`` one hears how many there are and can step through them.
"""

from typing import Any

from sphinx.application import Sphinx


def mark_citations(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the entries of a page the role that fits their list."""
    if "body" in context:
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def setup(app: Sphinx) -> dict[str, bool]:
    """Run when a page's HTML is complete."""
    app.connect("html-page-context", mark_citations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
