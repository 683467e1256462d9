"""Re-execution of notebooks: the same bytes at each run, and nothing stored that a reader shouldn't see."""

import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from rich.progress import Progress

from tools.execute_book import METADATA, Unfit, read, rerun


def stored(folder: Path, *cells: nbformat.NotebookNode) -> Path:
    """A notebook on disk, never run."""
    path = folder / "page.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


def run(path: Path) -> bool:
    """Run it; whether its bytes changed."""
    return rerun(path, Progress(disable=True))


def test_a_second_run_leaves_every_byte(tmp_path: Path) -> None:
    raising = new_code_cell("int('x')", metadata={"tags": ["raises-exception"]})
    path = stored(
        tmp_path, new_markdown_cell("# Größe"), new_code_cell("for i in range(3):\n    print(i, flush=True)"), raising
    )
    ids = [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert run(path)
    first = path.read_bytes()
    assert not run(path)
    assert path.read_bytes() == first

    notebook = read(path)
    assert [cell.id for cell in notebook.cells] == ids
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2]
    assert notebook.metadata == METADATA
    assert [output.text for output in notebook.cells[1].outputs] == ["0\n1\n2\n"]
    assert notebook.cells[2].outputs[0].traceback == ["ValueError: invalid literal for int() with base 10: 'x'"]
    assert "Größe" in first.decode("utf-8")
    assert all("execution" not in cell.metadata for cell in notebook.cells)


def test_the_kernel_finds_the_package_and_runs_in_the_folder_of_the_notebook(tmp_path: Path) -> None:
    sources = (
        "import importlib.util, os",
        "print(importlib.util.find_spec('llm_internals') is not None)",
        "print(os.environ['OMP_NUM_THREADS'], os.path.exists('page.ipynb'))",
    )
    path = stored(tmp_path, *map(new_code_cell, sources))
    assert run(path)
    assert [cell.outputs[0].text for cell in read(path).cells[1:]] == ["True\n", "1 True\n"]


@pytest.mark.parametrize(
    ("source", "tags", "reason"),
    [
        ("import sys\nprint('slow', file=sys.stderr)", [], "wrote to stderr: slow"),
        ("import warnings\nwarnings.warn('old')", [], "wrote to stderr"),
        ("1 / 0", [], "ZeroDivisionError"),
        ("1", ["raises-exception"], "raised nothing"),
        ("object()", [], "address of memory"),
        ("import os\nos._exit(1)", [], "died"),
    ],
)
def test_what_is_not_fit_for_a_page_is_refused_and_the_file_stays(
    tmp_path: Path, source: str, tags: list[str], reason: str
) -> None:
    path = stored(tmp_path, new_code_cell(source, metadata={"tags": tags}))
    before = path.read_bytes()
    with pytest.raises(Unfit, match=reason):
        run(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["page.ipynb"]


def test_cells_without_ids_get_the_same_ones_each_time(tmp_path: Path) -> None:
    path = tmp_path / "old.ipynb"
    cells = [{"cell_type": "markdown", "metadata": {}, "source": text} for text in ("a", "a", "b")]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}), encoding="utf-8")
    ids = [cell.id for cell in read(path).cells]
    assert len(set(ids)) == 3
    assert [cell.id for cell in read(path).cells] == ids
