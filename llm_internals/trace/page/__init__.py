"""Stage 8: a recorded response -> one HTML page that needs nothing else.

The page is a file of this folder with three places to fill: styles, script, data. The script is plain JavaScript in
files by stage, joined in the order of `SCRIPTS`; it makes elements and sets their text, and never reads text as HTML,
so that a token such as ``</script>`` is a token and nothing more. The page's own policy forbids every request.

Leaves out a template engine, a library, a build step.

Chapter: ``00_one_response``.
Source: HTML Living Standard, "Restrictions for contents of script elements"; W3C, "Content Security Policy Level 3";
W3C, "ARIA Authoring Practices Guide", the patterns tabs and radio group.
"""

from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from llm_internals.html_json import json_for_html

SCRIPTS = (
    "elements.js",
    "recording.js",
    "tokens.js",
    "tokenize.js",
    "embed.js",
    "forward.js",
    "logits.js",
    "sample.js",
    "detokenize.js",
    "loop.js",
    "main.js",
)
"""The script, in the order in which its parts build on each other."""


def page(title: str, data: Any) -> str:
    """Put title and data into the page.

    Parameters
    ----------
    title : str
        For the window.
    data : JSON
        What `Trace.to_json` returns.
    """
    folder = files(__name__)
    template = Template((folder / "page.html").read_text(encoding="utf-8"))
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    style = (folder / "style.css").read_text(encoding="utf-8")
    return template.substitute(title=escape(title), style=style, script=script, data=json_for_html(data))
