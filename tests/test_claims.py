"""Every statement that the book sets out to show is asserted in the chapter that owns it.

``tests/data/claims.yaml`` has the table. A chapter that joins ``_toc.yml`` brings, in its part "Check", a cell for each
of its claims: with the tag ``claim-<number>`` and an assert. A cell may carry several tags.
Chapters to come are pending.
"""

import ast
import re
from pathlib import Path

import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.book_rules import Page, tags_of, tree_of

ROOT = Path(__file__).parent.parent
BOOK = ROOT / "book"
CLAIMS = yaml.safe_load((ROOT / "tests" / "data" / "claims.yaml").read_text(encoding="utf-8"))
TOC = (ROOT / "_toc.yml").read_text(encoding="utf-8")
CHAPTERS = sorted({str(claim["chapter"]) for claim in CLAIMS})
READY = [name for name in CHAPTERS if re.search(rf"\bbook/{name}\b", TOC)]
TAG = re.compile(r"claim-(\d+)")


def asserted(page: Page) -> list[int]:
    """The numbers of the claims that cells in "Check" carry as tags and assert."""
    return [
        int(match[1])
        for cell in page.section("Check")
        if cell.cell_type == "code" and any(isinstance(node, ast.Assert) for node in ast.walk(tree_of(cell)))
        for tag in sorted(tags_of(cell))
        if (match := TAG.fullmatch(tag))
    ]


def owned(chapter: str) -> list[int]:
    """The numbers of the claims that a chapter owns."""
    return [claim["number"] for claim in CLAIMS if claim["chapter"] == chapter]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_of_the_book_asserts_each_of_its_claims_once_and_no_other(chapter: str) -> None:
    path = BOOK / f"{chapter}.ipynb"
    assert path.exists() == (chapter in READY), "a chapter is on disk and in _toc.yml, or still to come"
    if path.exists():
        assert sorted(asserted(Page.read(path))) == owned(chapter)


def test_no_claim_stands_in_a_chapter_that_owns_none() -> None:
    others = [path for path in BOOK.glob("[!_]*.ipynb") if path.stem not in CHAPTERS]
    assert {path.stem: asserted(Page.read(path)) for path in others} == {path.stem: [] for path in others}


def test_the_table_has_every_claim_once_with_a_chapter_of_the_book() -> None:
    assert [claim["number"] for claim in CLAIMS] == list(range(1, 38))
    assert all(set(claim) <= {"number", "chapter", "claim", "care"} and claim["claim"] for claim in CLAIMS)
    assert all(re.fullmatch(r"\d\d[abc]?_[a-z_]+", chapter) for chapter in CHAPTERS)


def test_a_claim_counts_only_with_an_assert_in_the_check_part() -> None:
    def tagged(source: str, *tags: str) -> dict:
        return new_code_cell(source, metadata={"tags": list(tags)})

    cells = [
        new_markdown_cell("## By hand"),
        tagged("assert x", "claim-1"),
        new_markdown_cell("## Check"),
        tagged("x", "claim-2"),
        tagged("assert x", "claim-3", "claim-12"),
        tagged("assert x", "claims-4", "claim-"),
        new_markdown_cell("## Summary"),
        tagged("assert x", "claim-5"),
    ]
    assert sorted(asserted(Page("x", new_notebook(cells=cells), BOOK))) == [3, 12]
