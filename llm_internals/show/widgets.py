"""Put an interactive part on a page: its data, its JavaScript, and what to show where scripts don't run."""

import re
from html import escape
from importlib.resources import files
from typing import Any

from llm_internals.html_json import json_for_html
from llm_internals.show.outputs import Output

FOLDER = "interactive"
USES = re.compile(r"^// uses (_[a-z_]+\.js)$", re.MULTILINE)
MOUNT = """\
const figure = document.currentScript?.closest("figure") ?? document.getElementById("ID");
const fallback = figure.querySelector("[data-fallback]");
const root = document.createElement("div");
fallback.before(root);
mount(root, JSON.parse(figure.querySelector('script[type="application/json"]').textContent));
fallback.remove();
"""
"""Finds the figure that it stands in (JupyterLab may show an output twice), and takes the fallback away last."""

MOUNT_WITH_FILE = """\
const figure = document.currentScript?.closest("figure") ?? document.getElementById("ID");
const folder = document.documentElement.dataset.content_root;
const file = document.createElement("script");
file.addEventListener("load", () => {
  const fallback = figure.querySelector("[data-fallback]");
  const root = document.createElement("div");
  fallback.before(root);
  mount(root, JSON.parse(figure.querySelector('script[type="application/json"]').textContent), file.content);
  fallback.remove();
});
if (folder !== undefined) {
  file.src = `${folder}_static/FILE`;
  figure.append(file);
}
"""
"""The same, once the file is loaded; only a page of the built book says where its folder ``_static`` is."""


def interactive(
    name: str,
    data: Any,
    *,
    caption: str,
    fallback: str | Output,
    id: str | None = None,
    file: str | None = None,
) -> Output:
    """One self-contained piece of HTML that asks no host for anything and runs in the built book and in JupyterLab.

    The component is the file ``llm_internals/figures/interactive/<name>.js``. It defines ``function mount(root,
    data)``, which builds its controls in the empty element ``root``. It looks up nothing by id and leaves nothing in
    the global scope, so that a page can hold several. Files that begin with an underscore hold what components share.

    What is too large to stand in a notebook lies in a script of its own, ``book/_static/<file>``, which says
    ``document.currentScript.content = ...``. The component is then ``mount(root, data, content)``. JupyterLab doesn't
    reach that folder and goes on showing the fallback, so let it say so.

    Parameters
    ----------
    name : str
        The component: lower-case words joined by underscores.
    data : JSON
        What the component draws; numbers rounded, so that the output is the same on every CPU.
    caption : str
        Names the part for screen readers and stands under it.
    fallback : str or Output
        Text, or an output such as a table, for readers whose page runs no scripts.
    id : str, optional
        The part's address on the page, the name with hyphens by default; needed for the second one of its kind.
    file : str, optional
        Name of a script in ``book/_static``.

    Raises
    ------
    ValueError
        If there is no such component, `data` holds something that JSON has no form for, as NaN, or `id` or `file` is
        not a plain name.
    """
    script = component(name)
    id = id or name.replace("_", "-")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", id):
        raise ValueError(f"id must be lower-case letters, digits and hyphens, but is {id!r}")
    if file is not None and not re.fullmatch(r"[a-z][a-z0-9_-]*\.js", file):
        raise ValueError(f"file must be lower-case letters, digits, hyphens and underscores with .js, but is {file!r}")
    start = (MOUNT_WITH_FILE.replace("FILE", file) if file else MOUNT).replace("ID", id)
    inside = fallback.html if isinstance(fallback, Output) else f"<p>{escape(fallback)}</p>"
    plain = fallback.data["text/plain"] if isinstance(fallback, Output) else fallback
    html = (
        f'<figure class="llm-interactive" id="{id}" aria-label="{escape(caption)}" style="margin: 1em 0">\n'
        f"<div data-fallback>{inside}</div>\n<figcaption>{escape(caption)}</figcaption>\n"
        f'<script type="application/json">{json_for_html(data)}</script>\n'
        f"<script>\n(() => {{\n{script}\n{start}}})();\n</script>\n</figure>"
    )
    return Output({"text/html": html, "text/plain": f"{caption}\n{plain}"})


def component(name: str) -> str:
    """The JavaScript of a component.

    A line ``// uses _<part>.js`` in it asks for a file that several components share; that file goes before it.
    """
    folder = files("llm_internals.figures") / FOLDER
    names = [file.name.removesuffix(".js") for file in folder.iterdir() if file.name.endswith(".js")]
    known = sorted(name for name in names if not name.startswith("_"))
    if name not in known:
        raise ValueError(f"name must be one of the components {known}, but is {name!r}")
    own = (folder / f"{name}.js").read_text(encoding="utf-8")
    shared = [(folder / part).read_text(encoding="utf-8") for part in USES.findall(own)]
    return "\n".join([*shared, own]).strip()
