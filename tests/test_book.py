"""The rules of the book: every chapter keeps them, and each rule notices when it is broken.

The rules themselves are in `tools.book_rules`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from llm_internals import show
from tools import book_rules
from tools.book_rules import BONES, RULES, Page

ROOT = Path(__file__).parent.parent
BOOK = ROOT / "book"
TEMPLATE = BOOK / "_template.ipynb"


def pages_in_toc() -> list[str]:
    """The files that the table of contents names, in its order, without ending."""

    def files(entry: dict) -> Iterator[str]:
        yield from (str(entry[key]) for key in ("root", "file") if key in entry)
        for key in ("parts", "chapters", "sections"):
            for inner in entry.get(key, []):
                yield from files(inner)

    return list(files(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))))


CHAPTERS = [ROOT / f"{page}.ipynb" for page in pages_in_toc() if (ROOT / f"{page}.ipynb").exists()]


# The chapters


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_keeps_the_rules(path: Path, rule: Callable[[Page], Iterator[str]]) -> None:
    assert list(rule(Page.read(path))) == []


def test_there_is_a_chapter() -> None:
    assert CHAPTERS != []


def test_the_table_of_contents_names_every_page_once_and_no_other() -> None:
    on_disk = {
        f"book/{path.stem}" for path in BOOK.iterdir() if path.suffix in {".md", ".ipynb"} and path.stem[0] != "_"
    }
    assert sorted(pages_in_toc()) == sorted(on_disk)


def test_figures_have_names_of_their_own_in_the_whole_book() -> None:
    names = [figure["name"] for path in CHAPTERS for _, figure in book_rules.figures_of(Page.read(path)) if figure]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("path", sorted(BOOK.glob("*.md")), ids=lambda path: path.name)
@pytest.mark.parametrize(
    "rule",
    [book_rules.one_sentence_a_line, book_rules.plain_words, book_rules.links_lead_somewhere],
    ids=lambda rule: rule.__name__,
)
def test_a_page_of_text_keeps_the_rules_for_text(path: Path, rule: Callable[[Page], Iterator[str]]) -> None:
    cell = new_markdown_cell(path.read_text(encoding="utf-8"))
    assert list(rule(Page(path.stem, new_notebook(cells=[cell]), BOOK))) == []


def test_the_template_keeps_the_rules_and_calls_what_is_there() -> None:
    page = Page.read(TEMPLATE)
    called = {call for cell in page.code for call in book_rules.calls_of(cell) if call.startswith("show.")}
    assert {call for call in called if not hasattr(show, call.removeprefix("show."))} == set()
    assert set(problems(page)) == {"executed_in_order", "outputs_are_stored"}, "the template is never run"


# The rules


def chapter(**changed: list) -> Page:
    """A small chapter that keeps every rule, with the cells of some parts replaced."""
    folded = {"tags": ["hide-cell"], "jupyter": {"outputs_hidden": True}}
    parts: dict[str, list] = {
        "": [
            new_code_cell("try:\n    import x\nexcept ModuleNotFoundError:\n    raise SystemExit('run make book')"),
            new_code_cell("show.pipeline(1)", outputs=[shown("strip")]),
            new_code_cell("show.flow(a, b)", outputs=[shown("flow")]),
        ],
        "In code": [new_code_cell("show.source(f)", outputs=[shown("def f")])],
        "Check": [new_code_cell("assert 1 == 1")],
        "Sources": [new_markdown_cell("- {cite:t}`vaswani2017`, section 3")],
        "Exercises": [
            cell
            for number in (1, 2, 3)
            for cell in (
                new_markdown_cell(f"### {number}. Add"),
                new_code_cell("check_sum(None)"),
                new_code_cell("show.source(solution)", metadata=folded, outputs=[shown("def solution")]),
            )
        ],
    } | {name.replace("_", " ").strip(): cells for name, cells in changed.items()}
    cells = [new_markdown_cell("# Every token is drawn by lot"), *parts[""]]
    for bone in BONES:
        cells += [new_markdown_cell(f"## {bone}"), *parts.get(bone, [])]
    for count, cell in enumerate((cell for cell in cells if cell.cell_type == "code"), start=1):
        cell.execution_count = count
    return Page("05_sampling", new_notebook(cells=cells), BOOK)


def shown(text: str, **metadata: dict) -> dict:
    """An output."""
    return new_output("display_data", {"text/plain": text}, metadata=metadata)


def picture(**about: str) -> dict:
    """An output with a picture, as show.figure makes it; without ``about``, as matplotlib alone does."""
    return new_output("display_data", {"image/png": "", "text/plain": ""}, metadata={"figure": about} if about else {})


def text(*lines: str) -> list:
    """A Markdown cell, as the contents of a part."""
    return [new_markdown_cell("\n".join(lines))]


def code(source: str, tags: tuple[str, ...] = (), outputs: tuple = (), **metadata: dict) -> list:
    """A code cell, as the contents of a part."""
    return [new_code_cell(source, metadata={"tags": list(tags), **metadata}, outputs=list(outputs))]


def problems(page: Page) -> dict[str, list[str]]:
    """What each rule finds, without the rules that find nothing."""
    found = {rule.__name__: list(rule(page)) for rule in RULES}
    return {name: lines for name, lines in found.items() if lines}


def test_a_good_chapter_passes_every_rule() -> None:
    good = {"name": "fig-x", "caption": "A line.", "alt": "a line"}
    stderr_free = new_output("stream", name="stdout", text="1\n")
    page = chapter(
        The_idea=[
            *text("A **token** is a piece, as {numref}`fig-x` shows.", "It isn't a word, e.g. `a. B`.", "| a. B | c |"),
            *code("figures.draw()", outputs=(picture(**good),)),
        ],
        By_hand=code("def f():\n    return 1"),
        On_the_real_model=[
            *code("%time x", ("nbval-ignore-output",)),
            *text("These times are not compared: each machine has its own."),
        ],
        What_goes_wrong=code(
            "1 / 0", ("raises-exception",), (new_output("error", ename="E", evalue="", traceback=[]),)
        ),
        Summary=text("See [the glossary](glossary.md#bpe) and [a paper](https://example.org)."),
        In_production=code("print(1)", outputs=(stderr_free,)),
    )
    assert problems(page) == {}


NAMED = {"name": "fig-x", "caption": "c", "alt": "a"}
BAD = [
    ("outputs_are_stored", {"The_idea": code("print(1)")}),
    ("outputs_are_stored", {"The_idea": code("show.table(x)")}),
    ("no_errors", {"The_idea": code("x", outputs=(new_output("stream", name="stderr", text="w"),))}),
    ("no_errors", {"The_idea": code("x", outputs=(new_output("error", ename="E", evalue="", traceback=[]),))}),
    ("no_errors", {"The_idea": code("x", ("raises-exception",))}),
    ("bones", {"The_idea": text("## One more part")}),
    ("bones", {"The_idea": text("# A second title of the page")}),
    ("opening", {"": code("import x")}),
    ("opening", {"": code("try: x\nexcept ModuleNotFoundError: 'make book'\nshow.pipeline(1)", outputs=(shown("x"),))}),
    ("logic_lives_in_the_package", {"In_production": code("def f():\n    return 1")}),
    ("logic_lives_in_the_package", {"In_production": code("if x:\n    class C: pass")}),
    ("source_is_shown", {"In_code": []}),
    ("checks_assert", {"Check": code("x == 1")}),
    ("exercises", {"Exercises": []}),
    ("exercises", {"Exercises": [*text("### 1. a"), *text("### 2. b"), *text("### 3. c")]}),
    ("one_sentence_a_line", {"The_idea": text("A token is a piece. It isn't a word.")}),
    ("one_sentence_a_line", {"The_idea": text("- Is it a *word*? No.")}),
    ("one_sentence_a_line", {"The_idea": text("They call it $E$ (see below.) Then it ends.")}),
    ("plain_words", {"The_idea": text("We simply add.")}),
    ("plain_words", {"The_idea": text("Obviously not.")}),
    ("plain_words", {"The_idea": text("It is just a sum.")}),
    ("figures", {"The_idea": code("plt.plot()", outputs=(picture(),))}),
    ("figures", {"The_idea": code("f()", outputs=(picture(**NAMED),))}),
    ("figures", {"The_idea": [*text("{numref}`fig-x`"), *code("f()", outputs=(picture(**NAMED | {"alt": ""}),))]}),
    ("figures", {"The_idea": [*text("{numref}`fig-x`"), *code("f()", outputs=(picture(**NAMED), picture(**NAMED)))]}),
    ("timings_are_marked", {"The_idea": code("begin = time.perf_counter()")}),
    ("timings_are_marked", {"The_idea": code("x", ("nbval-ignore-output",))}),
    ("timings_are_marked", {"The_idea": code("x", ("nbval-skip",))}),
    ("same_on_every_machine", {"The_idea": code("open('/home/me/file')")}),
    ("same_on_every_machine", {"The_idea": code("x", outputs=(shown("/usr/lib/python3/site-packages/torch"),))}),
    ("same_on_every_machine", {"The_idea": code("x", outputs=(shown("<object at 0x7f3a5c2b1d90>"),))}),
    ("stored_form", {"The_idea": [new_raw_cell("x")]}),
    ("stored_form", {"The_idea": code("x", execution={"iopub.status.busy": "2026"})}),
    ("stored_form", {"The_idea": code("x", outputs=(shown("x" * book_rules.MAX_BYTES),))}),
    ("bold_once", {"The_idea": text("A **token**.", "Another **Token**.")}),
    ("bold_words_are_in_the_glossary", {"The_idea": text("A **frobnicator**.")}),
    ("sources_are_cited", {"Sources": text("Many books.")}),
    ("links_lead_somewhere", {"The_idea": text("[gone](99_gone.ipynb#there)")}),
    ("executed_in_order", {"The_idea": text("")}),
]


@pytest.mark.parametrize(("rule", "changed"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_a_rule_notices_when_it_is_broken(rule: str, changed: dict[str, list]) -> None:
    assert list(problems(chapter(**changed))) == [rule]


@pytest.mark.parametrize("counts", [[None, None], [1, 3], [2, 1]])
def test_cells_that_were_not_run_in_order_are_noticed(counts: list[int | None]) -> None:
    page = Page("x", new_notebook(cells=[new_code_cell("x", execution_count=count) for count in counts]), BOOK)
    assert "execution counts" in next(book_rules.executed_in_order(page))


def test_an_exercise_without_a_check_or_a_folded_solution_is_noticed() -> None:
    bare = [cell for _ in range(3) for cell in (*text("### 1. Add"), *code("show.source(f)", outputs=(shown("x"),)))]
    found = list(book_rules.exercises(chapter(Exercises=bare)))
    assert [line.split(" has no ")[1][:6] for line in found] == ["cell t", "folded"] * 3


def test_pages_with_fewer_parts_end_in_theirs() -> None:
    cells = [new_markdown_cell(line) for line in ("# One answer, step by step", "## A walk", "## Check", "## Summary")]
    page = Page("00_one_response", new_notebook(cells=cells), BOOK)
    assert "the last parts must be" in next(book_rules.bones(page))
    page.notebook.cells.append(new_markdown_cell("## Where to go next"))
    assert list(book_rules.bones(Page(page.name, page.notebook, BOOK))) == []


def test_every_rule_is_tried_on_a_notebook_that_breaks_it() -> None:
    assert {rule for rule, _ in BAD} == {rule.__name__ for rule in RULES}
