"""The rules that every chapter keeps, each a function that yields what it finds broken in one notebook.

    python -m tools.book_rules book/05_sampling.ipynb     # all rules on one chapter

`tests/test_book.py` runs all of them on every chapter, and each of them on a notebook that breaks it.
"""

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.sphinx_ext.glossary_links import singular_forms

BONES = (
    "What you will be able to do",
    "Before you start",
    "The idea",
    "By hand",
    "In code",
    "On the real model",
    "Check",
    "What goes wrong",
    "Exercises",
    "In production",
    "Summary",
    "Sources",
)
FEWER_BONES = ("Check", "Summary", "Where to go next")
CHAPTERS_WITH_FEWER_BONES = ("00_one_response", "03_forward_pass")
"""The page that walks through all stages, and the one that opens stage 3: before Check, parts of their own."""

EXERCISES = 3
MAX_BYTES = 2_000_000
BANNED = re.compile(r"\b(simply|just|obviously)\b", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|work|mnt|opt|var)/\w|site-packages|\b[A-Z]:\\\\?\w")
MEMORY_ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}\b")
CLOCK = re.compile(r"perf_counter|timeit|monotonic\(|%%?time\b|process_time")
TWO_SENTENCES = re.compile(r"(?:[a-z0-9)\]*_]|\bX)[.!?][)*_\"”]* +[*_\"“(]*[A-Z](?!\.)")
LINE_MARK = re.compile(r"^\s*(?:#+ +|[-*+] +)?(?:\d+\. +)?(?:\*\*[^*]+[.:]\*\*)?")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|vs|et al|etc|Fig|Eq|Sec|No|approx|pp?)\. ")
NOT_PROSE = re.compile(r"```.*?```|:::.*?:::|\$\$.*?\$\$|\$[^$\n]+\$|`[^`\n]+`|<[^>\n]+>|(?<=\])\([^)\n]*\)", re.DOTALL)
BOLD = re.compile(r"\*\*(.+?)\*\*")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FIGURE_REFERENCE = re.compile(r"\{numref\}`(?:[^`<]*<)?([\w-]+)>?`|\]\(#(fig-[\w-]+)\)")
NOT_COMPARED = re.compile(r"\bnot compared\b", re.IGNORECASE)
FOLDED = {"hide-cell", "hide-output"}
MARKERS = frozenset({"Predict", "Answer", "Hint"})
"""Bold words that mark a part of the text and are no terms."""


@dataclass(frozen=True)
class Page:
    """A notebook with its name (the file's, without ending) and the folder that its links start from."""

    name: str
    notebook: NotebookNode
    folder: Path

    @classmethod
    def read(cls, path: Path) -> "Page":
        """A notebook of the book."""
        return cls(path.stem, nbformat.read(path, as_version=4), path.parent)

    @cached_property
    def code(self) -> list[NotebookNode]:
        """The code cells."""
        return [cell for cell in self.notebook.cells if cell.cell_type == "code"]

    @cached_property
    def markdown(self) -> list[NotebookNode]:
        """The Markdown cells."""
        return [cell for cell in self.notebook.cells if cell.cell_type == "markdown"]

    @cached_property
    def prose(self) -> str:
        """All Markdown without code, mathematics, HTML, directives and the targets of links."""
        return "\n\n".join(NOT_PROSE.sub(" ", cell.source) for cell in self.markdown)

    @cached_property
    def has_all_bones(self) -> bool:
        """Whether the page is a chapter with all parts."""
        return self.name not in CHAPTERS_WITH_FEWER_BONES

    @cached_property
    def sections(self) -> list[tuple[str, list[NotebookNode]]]:
        """The parts between headings of the second level, each with its heading; the first, before any, under ""."""
        parts: list[tuple[str, list[NotebookNode]]] = [("", [])]
        for cell in self.notebook.cells:
            headings = headings_of(cell, 2)
            parts[-1][1].extend([] if headings else [cell])
            parts.extend((heading, [cell]) for heading in headings)
        return parts

    def section(self, heading: str) -> list[NotebookNode]:
        """The cells of one part; none if there is no such part."""
        return next((cells for name, cells in self.sections if name == heading), [])


def headings_of(cell: NotebookNode, level: int) -> list[str]:
    """The headings of one level in a Markdown cell."""
    if cell.cell_type != "markdown":
        return []
    text = re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL)
    return re.findall(rf"^{'#' * level} (.+?)\s*$", text, re.MULTILINE)


def tags_of(cell: NotebookNode) -> set[str]:
    """The tags of a cell."""
    return set(cell.metadata.get("tags", []))


def tree_of(cell: NotebookNode) -> ast.Module:
    """The syntax tree of a code cell, without lines for IPython."""
    return ast.parse("\n".join("pass" if line.startswith(("%", "!")) else line for line in cell.source.splitlines()))


def calls_of(cell: NotebookNode) -> set[str]:
    """The names of the functions that a code cell calls, as ``show.pipeline`` or ``check_merges``."""
    calls = {ast.unparse(node.func) for node in ast.walk(tree_of(cell)) if isinstance(node, ast.Call)}
    return calls | {name.rsplit(".", 1)[-1] for name in calls}


def said(cell: NotebookNode) -> str:
    """The start of a cell, to find it by."""
    return f"cell {cell.id} ({cell.source.strip().splitlines()[0][:60] if cell.source.strip() else 'empty'})"


def executed_in_order(page: Page) -> Iterator[str]:
    """Every code cell holds something and was run, from 1 to n: nbval passes over a cell that never was."""
    counts = [cell.execution_count for cell in page.code]
    if counts != list(range(1, len(counts) + 1)):
        yield f"execution counts are {counts}, not 1 to {len(counts)}: run `python -m tools.execute_book`"
    yield from (f"{said(cell)} is empty" for cell in page.notebook.cells if not cell.source.strip())


def outputs_are_stored(page: Page) -> Iterator[str]:
    """What a cell shows or prints is there."""
    for cell in page.code:
        speaks = {call for call in calls_of(cell) if call == "print" or call.startswith("show.")} - {"show.number"}
        if speaks and not cell.outputs:
            yield f"{said(cell)} calls {', '.join(sorted(speaks))} and has no stored output"


def no_errors(page: Page) -> Iterator[str]:
    """No stderr; no error but where the cell says that it is wanted."""
    for cell in page.code:
        kinds = {output.output_type for output in cell.outputs}
        if any(output.get("name") == "stderr" for output in cell.outputs):
            yield f"{said(cell)} wrote to stderr"
        if ("error" in kinds) != ("raises-exception" in tags_of(cell)):
            yield f"{said(cell)}: an error and the tag raises-exception come together or not at all"


def bones(page: Page) -> Iterator[str]:
    """One title, and the parts of a chapter in their order."""
    titles = [title for cell in page.notebook.cells for title in headings_of(cell, 1)]
    first = page.notebook.cells[0] if page.notebook.cells else None
    if len(titles) != 1 or first is None or headings_of(first, 1) != titles:
        yield f"the first cell must hold the one title, but the titles are {titles}"
    if titles and len(titles[0].split()) < 4:
        yield f"the title must make a claim with a verb, but is {titles[0]!r}"
    found = [heading for heading, _ in page.sections if heading]
    if page.has_all_bones and found != list(BONES):
        yield f"the parts must be {list(BONES)}, but are {found}"
    if not page.has_all_bones and found[-len(FEWER_BONES) :] != list(FEWER_BONES):
        yield f"the last parts must be {list(FEWER_BONES)}, but the parts are {found}"


def opening(page: Page) -> Iterator[str]:
    """Before the first part: what to do where the package is missing, the strip, and what comes in and goes out."""
    guard = page.code[0].source if page.code else ""
    if "except ModuleNotFoundError" not in guard or "make book" not in guard:
        yield "the first code cell must catch ModuleNotFoundError and say what to do (`make book`)"
    before = [cell for cell in page.section("") if cell.cell_type == "code"]
    called = {call for cell in before for call in calls_of(cell)}
    wanted = {"show.pipeline", "show.flow"} if page.has_all_bones else {"show.pipeline"}
    yield from (f"no {call}(...) before the first part" for call in sorted(wanted - called))


def logic_lives_in_the_package(page: Page) -> Iterator[str]:
    """Functions and classes are defined in "By hand" alone."""
    for heading, cells in page.sections:
        for cell in cells:
            if heading != "By hand" and cell.cell_type == "code":
                kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
                names = [node.name for node in ast.walk(tree_of(cell)) if isinstance(node, kinds)]
                yield from (f"{name} is defined outside 'By hand'" for name in names)


def source_is_shown(page: Page) -> Iterator[str]:
    """ "In code" shows the package's own source."""
    shown = any("show.source" in calls_of(cell) for cell in page.section("In code") if cell.cell_type == "code")
    if page.has_all_bones and not shown:
        yield "'In code' must show the package's source with show.source(...)"


def checks_assert(page: Page) -> Iterator[str]:
    """ "Check" holds an assertion in plain sight."""
    cells = [cell for cell in page.section("Check") if cell.cell_type == "code"]
    if not any(isinstance(node, ast.Assert) for cell in cells for node in ast.walk(tree_of(cell))):
        yield "'Check' must hold a code cell with an assert"


def exercises(page: Page) -> Iterator[str]:
    """Three exercises, each with a check and then a folded solution, in the page and in JupyterLab."""
    if not page.has_all_bones:
        return
    parts: list[list[NotebookNode]] = []
    for cell in page.section("Exercises"):
        parts.extend([] for _ in headings_of(cell, 3))
        if parts:
            parts[-1].append(cell)
    if len(parts) != EXERCISES:
        yield f"there must be {EXERCISES} exercises (headings of the third level), but there are {len(parts)}"
    for number, cells in enumerate(parts, start=1):
        code = [cell for cell in cells if cell.cell_type == "code"]
        if not any(call.startswith("check_") for cell in code for call in calls_of(cell)):
            yield f"exercise {number} has no cell that calls a check_*"
        if not any(is_folded(cell) for cell in code):
            yield f"exercise {number} has no folded solution: a cell with the metadata of the one in _template.ipynb"


def is_folded(cell: NotebookNode) -> bool:
    """Whether a code cell is closed at first, in the built page as well as in JupyterLab."""
    return bool(tags_of(cell) & FOLDED) and cell.metadata.get("jupyter", {}).get("outputs_hidden") is True


def one_sentence_a_line(page: Page) -> Iterator[str]:
    """A line of Markdown ends where its sentence does, so that a change of text is a change of a line."""
    for line in page.prose.splitlines():
        if line.lstrip().startswith("|"):
            continue
        if found := TWO_SENTENCES.search(ABBREVIATION.sub("", LINE_MARK.sub("", line))):
            yield f"two sentences on one line, at {found[0]!r}: {line.strip()[:100]}"


def plain_words(page: Page) -> Iterator[str]:
    """No word that tells a reader who doesn't see it that it is easy."""
    for found in BANNED.finditer(page.prose):
        yield f"the word {found[0]!r}: {page.prose[max(0, found.start() - 40) : found.end() + 30]!r}"


def figures(page: Page) -> Iterator[str]:
    """A picture comes from show.figure, which gives it name, caption and alt text, and the text refers to it."""
    names = [figure["name"] for _, figure in figures_of(page) if figure]
    yield from (f"{said(cell)} shows a picture without show.figure" for cell, figure in figures_of(page) if not figure)
    for _, figure in figures_of(page):
        if figure and not (figure.get("caption", "").strip() and figure.get("alt", "").strip()):
            yield f"figure {figure['name']} lacks a caption or an alt text"
    text = "\n".join(cell.source for cell in page.markdown)
    mentioned = {name or other for name, other in FIGURE_REFERENCE.findall(text)}
    yield from (f"no sentence refers to {name} by {{numref}}`{name}`" for name in names if name not in mentioned)
    yield from (f"two figures are named {name}" for name, times in Counter(names).items() if times > 1)


def figures_of(page: Page) -> list[tuple[NotebookNode, dict | None]]:
    """Every stored picture: its cell, and what show.figure said about it."""
    return [
        (cell, output.metadata.get("figure"))
        for cell in page.code
        for output in cell.outputs
        if {"image/png", "image/jpeg", "image/svg+xml"} & set(output.get("data", {}))
    ]


def timings_are_marked(page: Page) -> Iterator[str]:
    """A cell that times something isn't compared, and the text beside it says so; nothing else goes uncompared."""
    cells = page.notebook.cells
    for place, cell in enumerate(cells):
        if cell.cell_type != "code":
            continue
        ignored = "nbval-ignore-output" in tags_of(cell)
        if CLOCK.search(cell.source) and not ignored:
            yield f"{said(cell)} measures time without the tag nbval-ignore-output"
        beside = [other.source for other in cells[max(0, place - 1) : place + 2] if other.cell_type == "markdown"]
        if ignored and not any(NOT_COMPARED.search(text) for text in beside):
            yield f"{said(cell)} isn't compared: a sentence beside it must say that it is 'not compared', and why"
        if "nbval-skip" in tags_of(cell):
            yield f"{said(cell)} has the tag nbval-skip: every cell must run"


def same_on_every_machine(page: Page) -> Iterator[str]:
    """No path of one machine, no address of memory, in source or output."""
    for cell in page.notebook.cells:
        text = cell.source + "\n" + "\n".join(text_of(output) for output in cell.get("outputs", []))
        for pattern, what in ((MACHINE_PATH, "a path of one machine"), (MEMORY_ADDRESS, "an address of memory")):
            if found := pattern.search(text):
                yield f"{said(cell)} holds {what}: {text[found.start() : found.end() + 30]!r}"


def text_of(output: NotebookNode) -> str:
    """All text forms of an output."""
    data = output.get("data", {})
    return "\n".join([output.get("text", ""), *(value for kind, value in data.items() if kind.startswith("text/"))])


def stored_form(page: Page) -> Iterator[str]:
    """The form that tools/execute_book.py writes: no widgets, times, version of Python or raw cells; not too large."""
    metadata = page.notebook.metadata
    if "widgets" in metadata or "version" in metadata.get("language_info", {}):
        yield "metadata of one run is stored: run `python -m tools.execute_book`"
    if any("execution" in cell.metadata for cell in page.code):
        yield "times of execution are stored: run `python -m tools.execute_book`"
    if any(cell.cell_type == "raw" or cell.get("attachments") for cell in page.notebook.cells):
        yield "raw cells and attachments don't reach the page"
    size = len(nbformat.writes(page.notebook).encode("utf-8"))
    if size > MAX_BYTES:
        yield f"the notebook has {size:,} bytes, more than {MAX_BYTES:,}: draw fewer points or a smaller picture"


def bold_once(page: Page) -> Iterator[str]:
    """A term is bold where it is introduced, and only there."""
    terms = Counter(term.strip(" .:?!,").lower() for term in BOLD.findall(page.prose))
    for marker in MARKERS:
        terms.pop(marker.lower(), None)
    yield from (f"{term!r} is bold {times} times" for term, times in terms.items() if times > 1)


def bold_words_are_in_the_glossary(page: Page) -> Iterator[str]:
    """What is bold is a term of the glossary, to which the built page links it, or marks a part of the text."""
    for term in {bold.strip(" .:?!,") for bold in BOLD.findall(page.prose)} - MARKERS:
        if not set(singular_forms(term)) & glossary_terms(page.folder):
            yield f"{term!r} is bold and not in the glossary"


@cache
def glossary_terms(folder: Path) -> frozenset[str]:
    """The terms of the glossary in lower case: the lines of its directive that aren't indented."""
    text = (folder / "glossary.md").read_text(encoding="utf-8")
    inside = re.findall(r"^```\{glossary\}.*?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return frozenset(line.strip().lower() for part in inside for line in part.splitlines() if re.match(r"[^\s:]", line))


def sources_are_cited(page: Page) -> Iterator[str]:
    """The last part names what the chapter is built on, from book/references.bib."""
    if page.has_all_bones and not any("{cite" in cell.source for cell in page.section("Sources")):
        yield "'Sources' must cite entries of references.bib, as {cite:t}`vaswani2017`"


def links_lead_somewhere(page: Page) -> Iterator[str]:
    """A link to a file of the book leads to a file that is there."""
    for cell in page.markdown:
        for target in LINK.findall(cell.source):
            file = target.split("#")[0]
            if file and not re.match(r"[a-z]+:", file) and not (page.folder / file).exists():
                yield f"{said(cell)} links to {target}, which isn't there"


RULES = (
    executed_in_order,
    outputs_are_stored,
    no_errors,
    bones,
    opening,
    logic_lives_in_the_package,
    source_is_shown,
    checks_assert,
    exercises,
    one_sentence_a_line,
    plain_words,
    figures,
    timings_are_marked,
    same_on_every_machine,
    stored_form,
    bold_once,
    bold_words_are_in_the_glossary,
    sources_are_cited,
    links_lead_somewhere,
)


def main() -> int:
    """Print what is broken in the notebooks that are named."""
    parser = argparse.ArgumentParser(description="Hold chapters against the rules.")
    parser.add_argument("notebooks", nargs="+", type=Path)
    pages = [Page.read(path) for path in parser.parse_args().notebooks]
    found = [f"{page.name}: {rule.__name__}: {text}" for page in pages for rule in RULES for text in rule(page)]
    print("\n".join(found) or "all rules kept")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
