"""Serve MathJax from the built book instead of a CDN, so that formulas appear offline and from ``file://``.

The package `sphinx-mathjax-offline` carries MathJax 3.2. Its own Sphinx extension copies all of it, 24 MB, and picks
the output that loads web fonts. The one file copied here draws formulas as SVG and loads nothing.
"""

from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile

from sphinx.application import Sphinx

COMPONENT = "tex-svg-full.js"


def carried_mathjax() -> Path:
    """Path of the MathJax component inside `sphinx-mathjax-offline` (its folder is no valid module name)."""
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the package sphinx-mathjax-offline is missing: pip install -r requirements.txt")
    return Path(spec.origin).parent / "static" / "mathjax" / COMPONENT


def copy_mathjax(app: Sphinx, exception: Exception | None) -> None:
    """Put the component into the built book's ``_static`` folder."""
    if exception is None and app.builder.format == "html":
        copyfile(carried_mathjax(), Path(app.outdir) / "_static" / COMPONENT)


def setup(app: Sphinx) -> dict[str, bool]:
    """Point Sphinx at the copy."""
    app.config.mathjax_path = COMPONENT
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
