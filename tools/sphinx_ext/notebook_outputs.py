"""Make of a notebook's stored outputs what a page needs: numbered figures, and links between chapters.

`llm_internals.show.figure` stores a picture, its caption as an output of its own (so that JupyterLab shows it), and, in
the picture's metadata, name, caption and alt text. Here the caption's output is dropped, and the rest becomes the cell
metadata from which MyST-NB makes a figure that can be referred to.

Links to notebooks in HTML outputs (``href="05_sampling.ipynb"``) open in JupyterLab as they are. Here they become
links to the pages; where the book has no such page, the text stays and the link goes.
"""

import json
import posixpath
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
NOTEBOOK_LINK = re.compile(
    r'<a href="(?P<stem>[^":]+)\.ipynb(?P<anchor>#[^"]*)?"(?P<rest>[^>]*)>(?P<inside>.*?)</a>', re.DOTALL
)


def prepare_outputs(app: Sphinx, docname: str, source: list[str]) -> None:
    """Rewrite a notebook's text before MyST-NB reads it."""
    if not app.env.doc2path(docname).endswith(".ipynb"):
        return
    notebook = json.loads(source[0])
    pages = set(app.env.found_docs)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            caption_figures(cell, docname)
            for output in cell["outputs"]:
                resolve_links(output, posixpath.dirname(docname), pages)
    source[0] = json.dumps(notebook, ensure_ascii=False)


def caption_figures(cell: dict[str, Any], docname: str) -> None:
    """Move the figure's name, caption and alt text from its output to the cell, and drop the caption's own output.

    MyST-NB would put every displayed output of the cell into a figure of that name, so a figure has its cell to itself.
    """
    cell["outputs"] = [output for output in cell["outputs"] if "caption_of" not in output.get("metadata", {})]
    displayed = [output for output in cell["outputs"] if "data" in output]
    for output in displayed:
        figure = output.get("metadata", {}).get("figure")
        if figure is not None:
            options = cell["metadata"].setdefault("mystnb", {})
            options["figure"] = {"name": figure["name"], "caption": figure["caption"]}
            options["image"] = {"alt": figure["alt"]}
            if len(displayed) > 1:
                LOGGER.warning("%s: give the figure %s a code cell of its own", docname, figure["name"])


def resolve_links(output: dict[str, Any], folder: str, pages: set[str]) -> None:
    """Point links to notebooks at the built pages, and unwrap those that lead nowhere in this book."""

    def to_page(link: re.Match[str]) -> str:
        if posixpath.normpath(posixpath.join(folder, link["stem"])) not in pages:
            return link["inside"]
        return f'<a href="{link["stem"]}.html{link["anchor"] or ""}"{link["rest"]}>{link["inside"]}</a>'

    html = output.get("data", {}).get("text/html")
    if html is not None:
        output["data"]["text/html"] = NOTEBOOK_LINK.sub(to_page, html if isinstance(html, str) else "".join(html))


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before the notebook is parsed."""
    app.connect("source-read", prepare_outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
