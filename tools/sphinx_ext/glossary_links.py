"""Link a bold term to its entry in the glossary.

In a chapter's source a term is bold where it is introduced, as ``**token**``, which JupyterLab shows well; a ``{term}``
role would stand there raw. The built page adds the link. Bold words that the glossary doesn't know stay as they are.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode


def glossary_terms(app: Sphinx) -> dict[str, tuple[str, str]]:
    """Each term in lower case: the page of its entry, and its place there."""
    domain = app.env.get_domain("std")
    return {name.lower(): (page, place) for name, _, kind, page, place, _ in domain.get_objects() if kind == "term"}


def singular_forms(text: str) -> list[str]:
    """How a bold word may stand in the glossary: as it is, or in the singular.

    >>> singular_forms("Query heads")
    ['query heads', 'query head']
    """
    word = " ".join(text.lower().split()).strip(".,:;?!")
    return [word, word.removesuffix("s")] if word.endswith("s") else [word]


def link_terms(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Wrap the contents of each bold term of a chapter into a link, unless it stands in a link already."""
    if not app.env.doc2path(docname).endswith(".ipynb"):
        return
    terms = glossary_terms(app)
    for strong in list(doctree.findall(nodes.strong)):
        known = next((terms[form] for form in singular_forms(strong.astext()) if form in terms), None)
        if known is None or isinstance(strong.parent, nodes.reference):
            continue
        page, place = known
        children = list(strong.children)
        strong.clear()
        strong += make_refnode(app.builder, docname, page, place, children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Run when all pages are read, so that all terms are known."""
    app.connect("doctree-resolved", link_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
