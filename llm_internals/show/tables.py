"""Tables that eyes and screen readers can follow, with a plain-text form for terminals."""

from collections.abc import Sequence
from html import escape
from numbers import Integral
from typing import Any

from llm_internals.show.outputs import Output

SIDES = {"l": "left", "c": "center", "r": "right"}


def table(
    rows: Sequence[Sequence[Any]],
    header: Sequence[str],
    caption: str,
    *,
    align: str | None = None,
    row_header: bool = False,
) -> Output:
    """A table with a caption, and with header cells that say what they head.

    Parameters
    ----------
    rows : sequence of rows
        Cells are text or integers, the latter without separators (an id has none; write a count as ``f"{n:,}"``).
        Floats are refused: `number` decides how many of their digits are true.
    header : sequence of str
        A name a column.
    caption : str
        What the table shows.
    align : str, optional
        A letter a column: l, c or r. By default columns that hold nothing but numbers are set to the right.
    row_header : bool
        Whether the first cell of a row names the row.

    Raises
    ------
    ValueError
        If a row or `align` has another length than `header`, or a cell is neither text nor an integer.

    Examples
    --------
    >>> table([["␣Sydney", "0.362"], ["␣Canberra", "0.341"]], ["token", "p"], caption="Two likely tokens")
    Two likely tokens
    token          p
    ␣Sydney    0.362
    ␣Canberra  0.341
    """
    cells = [[_text(value) for value in row] for row in rows]
    for row in cells:
        if len(row) != len(header):
            raise ValueError(f"each row must have {len(header)} cells, as the header, but one has {len(row)}: {row}")
    sides = _sides(cells, len(header), align)
    named = zip(header, sides, strict=True)
    head = "".join(f'<th scope="col" style="text-align: {side}">{escape(name)}</th>' for name, side in named)
    body = "\n".join(_row(row, sides, row_header) for row in cells)
    html = _framed(caption, f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>")
    return Output({"text/html": html, "text/plain": f"{caption}\n{_plain([list(header), *cells], sides)}"})


def flow(comes_in: Sequence[str], goes_out: Sequence[str]) -> Output:
    """The two rows that open a chapter: what its stage gets and what it hands on.

    Parameters
    ----------
    comes_in, goes_out : sequence of two str
        What it is, and its type and shape.

    Examples
    --------
    >>> flow(("the prompt", "str"), ("its tokens", "list of int [37]"))
    comes in  the prompt  str
    goes out  its tokens  list of int [37]
    """
    sides = ["left"] * 3
    rows = [["comes in", *comes_in], ["goes out", *goes_out]]
    body = "\n".join(_row(row, sides, row_header=True) for row in rows)
    name = "what comes in and what goes out"
    html = f'<table class="llm-table llm-flow" aria-label="{name}">\n<tbody>\n{body}\n</tbody>\n</table>'
    return Output({"text/html": html, "text/plain": _plain(rows, sides)})


def _text(value: Any) -> str:
    """A cell as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, Integral):
        return str(int(value))
    raise ValueError(f"a cell must be text or an integer, but is {value!r}: write a float as show.number(x, decimals)")


def _sides(cells: Sequence[Sequence[str]], columns: int, align: str | None) -> list[str]:
    """The side to which each column is set."""
    if align is None:
        numeric = [bool(cells) and all(_is_number(row[column]) for row in cells) for column in range(columns)]
        return ["right" if is_numeric else "left" for is_numeric in numeric]
    if len(align) != columns or set(align) - set(SIDES):
        raise ValueError(f"align must be {columns} letters out of l, c and r, but is {align!r}")
    return [SIDES[letter] for letter in align]


def _is_number(text: str) -> bool:
    """Whether a cell reads as a number, with a sign, separators, a unit of per cent, or a dash for none."""
    bare = text.removesuffix("%").strip().lstrip("+-−").replace(",", "").replace(".", "", 1)
    return bare.isdecimal() or text in ("–", "—", "")


def _row(cells: Sequence[str], sides: Sequence[str], row_header: bool) -> str:
    """One row of the body as HTML."""
    parts = []
    for column, (cell, side) in enumerate(zip(cells, sides, strict=True)):
        tag, scope = ("th", ' scope="row"') if row_header and column == 0 else ("td", "")
        parts.append(f'<{tag}{scope} style="text-align: {side}">{escape(cell)}</{tag}>')
    return f"<tr>{''.join(parts)}</tr>"


def _framed(caption: str, content: str) -> str:
    """The table in a frame that scrolls sideways, by keyboard too, where the page is narrower than the table."""
    name = escape(caption)
    return (
        f'<div class="llm-scroll" role="region" aria-label="{name}" tabindex="0" style="overflow-x: auto">\n'
        f'<table class="llm-table">\n<caption>{name}</caption>\n{content}\n</table>\n</div>'
    )


def _plain(rows: Sequence[Sequence[str]], sides: Sequence[str]) -> str:
    """Rows as aligned text."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(sides))]
    place = {"left": str.ljust, "center": str.center, "right": str.rjust}
    return "\n".join(
        "  ".join(place[side](cell, width) for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in rows
    )
