"""Show the package's real source on a page, so that the page changes when the code does."""

import ast
import inspect
import textwrap
from typing import Any

from llm_internals.show.outputs import Output


def source(thing: Any, *, docstrings: bool = True) -> Output:
    """The source of a function, method, class or module, under the name of its file.

    Parameters
    ----------
    thing
        Something defined in a Python file of the package.
    docstrings : bool
        False leaves them out, for a page whose text already says what they say.

    Raises
    ------
    ValueError
        If `thing` isn't defined in a Python file.

    Examples
    --------
    >>> source(longest_run, docstrings=False)
    def longest_run(text: str, character: str) -> int:
        longest = 0
        while character * (longest + 1) in text:
            longest += 1
        return longest
    """
    thing = inspect.unwrap(thing)
    path = file_of(thing)
    code = textwrap.dedent(inspect.getsource(thing)).rstrip()
    if not docstrings:
        code = without_docstrings(code)
    fence = "`" * max(3, 1 + longest_run(code, "`"))
    return Output({"text/markdown": f"`{path}`\n\n{fence}python\n{code}\n{fence}", "text/plain": code})


def file_of(thing: Any) -> str:
    """The file that defines `thing`, inside the repository: made from the module's name, never from a path of this
    machine.

    Examples
    --------
    >>> file_of(file_of)
    'llm_internals/show/sources.py'
    """
    module = inspect.getmodule(thing)
    if module is None or getattr(module, "__file__", None) is None:
        raise ValueError(f"thing must be a function, class or module of a Python file, but is {thing!r}")
    path = module.__name__.replace(".", "/")
    return f"{path}/__init__.py" if hasattr(module, "__path__") else f"{path}.py"


def without_docstrings(code: str) -> str:
    """Source text minus its docstrings and the blank line after each; all else stays as it is, comments included.

    A body that holds nothing but a docstring keeps it.
    """
    lines = code.splitlines()
    dropped: set[int] = set()
    for node in ast.walk(ast.parse(code)):
        if (
            isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
            and ast.get_docstring(node)
            and len(node.body) > 1
        ):
            last = node.body[0].end_lineno or node.body[0].lineno
            dropped.update(range(node.body[0].lineno, last + 1))
            dropped.update({last + 1} if not lines[last].strip() else ())
    return "\n".join(line for index, line in enumerate(lines, start=1) if index not in dropped)


def longest_run(text: str, character: str) -> int:
    """Length of the longest run of one character; a fence around the text needs one more.

    Examples
    --------
    >>> longest_run("a``b`", "`")
    2
    """
    longest = 0
    while character * (longest + 1) in text:
        longest += 1
    return longest
