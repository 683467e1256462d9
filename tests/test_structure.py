"""The house rules for code, kept by reading the source: which module may use which, and what each file holds.

Most rules are ruff's, set in ``pyproject.toml``; the last tests here show that those are on. The rest is below. Each
rule is a function that returns the problems it finds, and is tried on a small bad source as well as on the package.
"""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "llm_internals"

ORDER = (
    ("Stage 0", ("config", "tap", "linear")),
    ("Stage 1", ("byte_alphabet", "bpe", "bpe_training", "pretokenizer", "tokenizer", "chat")),
    ("Stage 2", ("embedding", "rope")),
    ("Stage 3", ("norm", "kv_cache", "attention", "feed_forward", "block", "model", "cost")),
    (
        "The weights file",
        ("byte_cursor", "dequantize", "packed", "gguf", "model_metadata", "weights_file", "huge_pages", "checkpoint"),
    ),
    ("Stage 4", ("logits", "likelihood", "calibration")),
    (
        "Stage 5",
        ("scores", "processors", "truncation", "drawing", "sampling_params", "sampling", "choice", "beam_search"),
    ),
    ("Stage 6", ("detokenizer",)),
    ("Stage 1", ("vocabularies",)),
    ("Stage 7", ("generate",)),
    ("Stage 8", ("html_json", "trace")),
    ("Stage 9", ("adapters", "tilt", "dpo", "preference")),
    ("Pages", ("figures", "show", "exercises")),
    ("Command line", ("command_line", "__main__")),
)
"""The modules of the package, from the ground up: each imports only from those before it. A folder is one module.

A module on disk that isn't named here fails a test; one that is named and not yet on disk doesn't.
"""
HEADINGS = {module: heading for heading, modules in ORDER for module in modules}
MODULES = tuple(HEADINGS)
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
PAGE_MODULES = dict(ORDER)["Pages"]
DISTRIBUTIONS = packages_distributions()
NOT_INSTALLED = {"llama-cpp", "llama-cpp-python"}
"""What ``benchmarks/requirements.txt`` adds for `make peers`: it compiles for minutes, and no test needs it. Where it
isn't installed the name is that of the import, and where it is that of the distribution."""
MAX_CODE_LINES = 300
MAX_FUNCTION_LINES = 55
"""Lines that hold code, without docstrings: a module aims at fewer than 200, a function at a dozen."""


def module_of(path: Path) -> str:
    """The name under which ``ORDER`` has a file: its own, or that of the folder it is in."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def name_of(path: Path) -> str:
    """A file's name in reports of tests."""
    return path.relative_to(PACKAGE).as_posix()


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Every module a source imports, wherever the import stands, as ``package.module.name``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = f"llm_internals.{node.module or ''}".rstrip(".") if node.level else str(node.module)
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def imports_from_below(tree: ast.AST, module: str) -> list[str]:
    """Modules of the package that ``module`` imports although they stand below it in ``ORDER``."""
    imported = {name.split(".")[1] for name in imported_names(tree) if name.startswith("llm_internals.")}
    allowed = set(MODULES[: MODULES.index(module) + 1])
    return sorted(name for name in imported & set(MODULES) if name not in allowed)


def lines_of_code(source: str) -> set[int]:
    """Numbers of the lines that hold code: no docstring, no comment, no blank line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    numbers = {line for token in tokens if token.type not in layout for line in range(token.start[0], token.end[0] + 1)}
    texts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr) and is_text(node.value)]
    return numbers - {line for node in texts for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def is_text(node: ast.AST) -> bool:
    """Whether a node is a string literal."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def too_long(source: str) -> dict[str, int]:
    """Functions of a source, and the file as ``(all)``, that hold more lines of code than they may."""
    code = lines_of_code(source)
    found = {"(all)": len(code)} if len(code) > MAX_CODE_LINES else {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = len(code & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
            found.update({node.name: length} if length > MAX_FUNCTION_LINES else {})
    return found


def docstring_problems(tree: ast.Module, heading: str) -> list[str]:
    """What the docstring of a stage's module lacks: its stage, its chapter, its source."""
    text = ast.get_docstring(tree) or ""
    wanted = {
        f"first line '{heading}...: ...'": rf"\A{heading}[^:\n]*: \S",
        "'Chapter: '": r"^Chapters?: ",
        "'Source: '": r"^Source: ",
    }
    return [f"no {what}" for what, pattern in wanted.items() if not re.search(pattern, text, re.MULTILINE)]


def third_party(tree: ast.AST) -> set[str]:
    """The distributions that a source needs, by the names under which pip knows them."""
    ours = {"llm_internals", "tools", "tests", "benchmarks"} | {path.stem for path in (ROOT / "tests").glob("*.py")}
    tops = {name.split(".")[0] for name in imported_names(tree)} - ours - sys.stdlib_module_names
    return {DISTRIBUTIONS.get(top, [top])[0].lower().replace("_", "-") for top in tops}


def pinned() -> set[str]:
    """Names of the distributions that ``requirements.txt`` pins."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return {re.split(r"[=\[]", line)[0].lower().replace("_", "-") for line in lines if "==" in line}


def pyproject() -> dict:
    """The contents of ``pyproject.toml``."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def ruff_codes(source: str, filename: str) -> set[str]:
    """The rules that ruff finds broken in a source, if it stood in that file."""
    command = [sys.executable, "-m", "ruff", "check", "--output-format", "json", "--stdin-filename", filename, "-"]
    result = subprocess.run(command, input=source, capture_output=True, encoding="utf-8", cwd=ROOT, check=False)
    return {finding["code"] for finding in json.loads(result.stdout)}


# The order of modules


def test_every_module_has_its_place_in_the_order() -> None:
    assert {module_of(path) for path in FILES} <= set(MODULES), "add the module to ORDER, after all that it imports"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_module_imports_only_from_those_above_it(path: Path) -> None:
    assert imports_from_below(parsed(path), module_of(path)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import llm_internals.sampling",
        "from llm_internals import sampling",
        "from llm_internals.sampling import draw",
        "from . import sampling",
        "from .sampling import draw",
        "def f():\n    from llm_internals import sampling",
        "if TYPE_CHECKING:\n    import llm_internals.sampling as s",
    ],
)
def test_an_import_from_below_is_noticed_in_every_spelling(source: str) -> None:
    assert imports_from_below(ast.parse(source), "attention") == ["sampling"]
    assert imports_from_below(ast.parse(source), "generate") == []


def test_the_package_opens_without_pages_and_without_a_network() -> None:
    program = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('the import asked for a connection')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "import llm_internals\n"
        f"heavy = {{'matplotlib', 'IPython', 'transformers', *('llm_internals.' + name for name in {PAGE_MODULES})}}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", cwd=ROOT, check=False
    )
    assert (result.stdout.strip(), result.stderr) == ("[]", "")


# What each file holds


@pytest.mark.parametrize("module", sorted({module_of(path) for path in FILES} - {"__main__"}))
def test_every_module_has_a_test_file(module: str) -> None:
    assert list((ROOT / "tests").glob(f"test_{module}.py" if module not in PAGE_MODULES else f"test_{module}*.py"))


@pytest.mark.parametrize("path", [path for path in FILES if module_of(path) not in PAGE_MODULES], ids=name_of)
def test_the_docstring_of_a_module_names_stage_chapter_and_source(path: Path) -> None:
    assert docstring_problems(parsed(path), HEADINGS[module_of(path)]) == []


def test_a_docstring_without_stage_chapter_and_source_is_noticed() -> None:
    assert len(docstring_problems(ast.parse('"""Attention."""'), "Stage 3")) == 3
    assert len(docstring_problems(ast.parse('"""Stage 30: q -> z.\n\nChapter: x\nSource: y"""'), "Stage 4")) == 1


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_modules_and_functions_stay_small(path: Path) -> None:
    assert too_long(path.read_text(encoding="utf-8")) == {}


def test_lines_of_code_leave_out_docstrings_comments_and_blanks() -> None:
    assert lines_of_code('"""Two\nlines."""\n\n# a comment\ndef f():\n    """One."""\n    return 1\n') == {5, 7}


def test_a_function_that_grew_too_long_is_noticed() -> None:
    assert too_long("def f():\n" + "    x = 1\n" * MAX_FUNCTION_LINES) == {"f": MAX_FUNCTION_LINES + 1}


def test_no_file_is_named_for_its_history_or_for_nothing() -> None:
    bad = re.compile(r"(^|_)(utils?|helpers?|misc|common|v\d+|new|old|fast)$")
    assert [path.name for path in FILES if bad.search(path.stem)] == []


# Dependencies


@pytest.mark.parametrize("folder", ["llm_internals", "tests", "tools", "benchmarks"])
def test_every_import_is_pinned(folder: str) -> None:
    needed = {name for path in (ROOT / folder).rglob("*.py") for name in third_party(parsed(path))}
    assert needed - pinned() - (NOT_INSTALLED if folder == "benchmarks" else set()) == set()


def test_a_dependency_without_a_pin_is_noticed() -> None:
    assert third_party(ast.parse("import os, numpy.linalg\nfrom sentencepiece import x\nimport not_installed")) == {
        "numpy",
        "sentencepiece",
        "not-installed",
    }


def test_the_package_declares_what_its_modules_import() -> None:
    declared = {name.lower() for name in pyproject()["project"]["dependencies"]}
    needed = {name for path in FILES for name in third_party(parsed(path))}
    assert declared == needed


def test_pins_stand_in_one_place() -> None:
    metadata = pyproject()["project"]
    assert [name for name in metadata["dependencies"] if not re.fullmatch(r"[A-Za-z0-9_.-]+", name)] == []
    assert {name.lower() for name in metadata["dependencies"]} <= pinned()
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    names = [line.split("==")[0].lower() for line in lines if "==" in line]
    assert len(names) == len(set(names))


# What ruff keeps


@pytest.mark.parametrize(
    ("code", "source"),
    [
        ("S301", "import pickle\n\npickle.loads(b'')\n"),
        ("S307", "eval('1')\n"),
        ("S102", "exec('1')\n"),
        ("PLW1514", "open('file')\n"),
        ("T201", "print(1)\n"),
        ("D103", "def f():\n    return 1\n"),
        ("E501", "x = '" + "x" * 130 + "'\n"),
        ("ERA001", "# x = 1\n"),
        ("TD002", "# TODO: more\n"),
    ],
)
def test_ruff_refuses_in_a_stage(code: str, source: str) -> None:
    assert code in ruff_codes(source, "llm_internals/attention.py")
