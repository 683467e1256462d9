"""Show tokens as a reader can check them: piece by piece, with every space visible and the id beneath."""

from collections.abc import Collection, Sequence
from html import escape

from llm_internals.figures.labels import visible
from llm_internals.show.outputs import Output

ROW = "display: flex; flex-wrap: wrap; gap: .4em .25em; list-style: none; padding: 0; margin: .6em 0"
CHIP = "padding: .1em .4em; border-radius: .3em; color: inherit; white-space: pre"
SHADES = ("rgba(0, 114, 178, .14)", "rgba(230, 159, 0, .20)")
LINE_BREAK = '<li aria-hidden="true" style="flex-basis: 100%; height: 0; margin: 0"></li>'


def tokens(pieces: Sequence[str | bytes], ids: Sequence[int], *, special_ids: Collection[int] = ()) -> Output:
    """A row of chips, one a token; after a token that ends a line a new row begins.

    Parameters
    ----------
    pieces : sequence of str or bytes
        The tokens' text, or their bytes where a token is a part of a character.
    ids : sequence of int
        The tokens' ids, as many.
    special_ids : collection of int
        Ids whose chips get a dashed border: tokens that come from the template and never from text.

    Raises
    ------
    ValueError
        If `pieces` and `ids` differ in number.

    Examples
    --------
    >>> tokens(["What", " is"], [1780, 314])
    What 1780 | ␣is 314
    """
    if len(pieces) != len(ids):
        raise ValueError(f"pieces and ids must be as many, but there are {len(pieces)} pieces and {len(ids)} ids")
    shown = [visible(piece) for piece in pieces]
    items = [
        _chip(text, int(id), index, int(id) in special_ids)
        for index, (text, id) in enumerate(zip(shown, ids, strict=True))
    ]
    rows = [item + LINE_BREAK * text.endswith("↵") for item, text in zip(items, shown, strict=True)]
    html = (
        f'<ol class="llm-tokens" role="list" aria-label="tokens, {len(shown)} in all" style="{ROW}">\n'
        + "\n".join(rows)
        + "\n</ol>"
    )
    plain = " | ".join(f"{text} {int(id)}" for text, id in zip(shown, ids, strict=True))
    return Output({"text/html": html, "text/plain": plain})


def _chip(text: str, id: int, index: int, special: bool) -> str:
    """One token; neighbours differ in shade, and a border keeps them apart for those who don't see the shades."""
    plain = f"border: 1px solid rgba(128, 128, 128, .45); background: {SHADES[index % 2]}"
    look = "border: 1px dashed currentColor; background: none" if special else plain
    name = ' title="special token"' if special else ""
    return (
        '<li style="display: flex; flex-direction: column; align-items: center; margin: 0">'
        f'<code style="{CHIP}; {look}"{name}>{escape(text)}</code>'
        f'<span style="font-size: .75em; font-variant-numeric: tabular-nums">{id}</span></li>'
    )
