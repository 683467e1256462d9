"""Run notebooks from top to bottom and store what comes out, byte for byte the same at each run.

    python -m tools.execute_book                             # every chapter: what `make execute` does
    python -m tools.execute_book book/05_sampling.ipynb      # one of them

A notebook is written only if its bytes change, and only if all of it is fit to be stored: no error (unless the cell's
tag ``raises-exception`` says that it is wanted), nothing on stderr, no address of memory. What differs between two runs
or two machines is left out: times, the version of Python, how a stream was cut, the traceback of a wanted error.
"""

import argparse
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

ROOT = Path(__file__).resolve().parent.parent
SECONDS_PER_CELL = 600
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}
ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}\b")
EXPECTED_ERROR = "raises-exception"


class Unfit(Exception):
    """A notebook whose run can't be stored; the message has a line for each reason."""


def chapters() -> list[Path]:
    """The notebooks of the book; a name that starts with an underscore is no chapter."""
    return sorted((ROOT / "book").glob("[!_]*.ipynb"))


def read(path: Path) -> NotebookNode:
    """A notebook in the current format; cells that had no id get one made of their place and source."""
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    has_ids = '"id":' in text
    for place, cell in enumerate(notebook.cells):
        if not has_ids:
            cell.id = hashlib.sha256(f"{place}{cell.source}".encode()).hexdigest()[:8]
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def execute(notebook: NotebookNode, folder: Path, progress: Progress) -> None:
    """Run all cells in a new kernel that finds the package, whether or not it is installed."""
    task = progress.add_task("", total=sum(cell.cell_type == "code" for cell in notebook.cells))
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=40"],
        on_cell_executed=lambda **_: progress.advance(task),
    )
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    client.execute(env=os.environ | {"PYTHONPATH": search, "OMP_NUM_THREADS": "1"})


def normalize(notebook: NotebookNode) -> None:
    """Take out what would differ at the next run, or on another machine."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output.traceback = [f"{output.ename}: {output.evalue}"]


def faults(notebook: NotebookNode) -> Iterator[str]:
    """Why the outputs can't be stored; nothing for a good run."""
    for place, cell in enumerate(notebook.cells):
        errors = [output for output in cell.get("outputs", []) if output.output_type == "error"]
        wanted = EXPECTED_ERROR in cell.metadata.get("tags", [])
        if wanted and not errors:
            yield f"cell {place} ({cell.id}) has the tag {EXPECTED_ERROR} and raised nothing"
        for output in cell.get("outputs", []):
            text = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            if output.get("name") == "stderr":
                yield f"cell {place} ({cell.id}) wrote to stderr: {text.strip().splitlines()[0][:200]}"
            if found := ADDRESS.search(text):
                yield f"cell {place} ({cell.id}) prints an address of memory, {found[0]}, which is another at each run"


def to_text(notebook: NotebookNode) -> str:
    """The bytes of a notebook, in one fixed form."""
    return nbformat.writes(notebook, indent=1, sort_keys=True, ensure_ascii=False).rstrip("\n") + "\n"


def replace_file(path: Path, text: str) -> None:
    """Write a file in one step, so that a killed run leaves the old one or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def rerun(path: Path, progress: Progress) -> bool:
    """Execute a notebook and store it; whether its bytes changed.

    Raises
    ------
    Unfit
        If a cell failed, or an output can't be stored. The file stays as it was.
    """
    notebook = read(path)
    try:
        execute(notebook, path.parent, progress)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise Unfit(str(error)) from error
    normalize(notebook)
    if reasons := list(faults(notebook)):
        raise Unfit("\n".join(reasons))
    text = to_text(notebook)
    if path.read_bytes() == text.encode("utf-8"):
        return False
    replace_file(path, text)
    return True


def main() -> int:
    """Read the command line and run the notebooks one after the other."""
    parser = argparse.ArgumentParser(description="Run notebooks and store their outputs.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: every chapter of the book")
    paths = parser.parse_args().notebooks or chapters()
    if absent := [str(path) for path in paths if not path.is_file()]:
        parser.error(f"no such notebook: {', '.join(absent)}")
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn())
    failed = 0
    for path in paths:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            try:
                result = "changed" if rerun(path, progress) else "unchanged"
            except Unfit as reasons:
                failed, result = failed + 1, f"NOT STORED\n{reasons}"
        print(f"{path}: {result}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
