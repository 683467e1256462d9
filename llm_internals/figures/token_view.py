"""The data of the interactive part ``token_view``: a whole byte-level BPE vocabulary, as a script of 260 kB.

A merged token is the two that it was made of, so the list of pairs in order of rank says all of the vocabulary but the
single bytes. A pair takes four bytes, two for each id, and base64 makes them text.

The page's notebook would be too large with it: the script lies in ``book/_static``, where `show.interactive` finds it.
"""

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np


def token_view_vocabulary(
    byte_ids: Sequence[int], pairs: Sequence[tuple[int, int]], products: Sequence[int], pattern: str
) -> dict[str, Any]:
    r"""A vocabulary as the token view reads it, as plain JSON.

    Parameters
    ----------
    byte_ids : sequence of int
        The id of each byte from 0 to 255; -1 for a byte that is no token.
    pairs : sequence of (left id, right id)
        The merges in order of rank, ids below 65,536.
    products : sequence of int
        The id that each pair becomes: one after the other, without a gap.
    pattern : str
        The split, in the syntax of the ``regex`` package. JavaScript reads it the same way but for ``\s``, which there
        is a list of its own and not Unicode's White_Space.

    Raises
    ------
    ValueError
        If there are not 256 bytes, the ids of the merges have gaps, or an id needs more than two bytes.

    Examples
    --------
    >>> vocabulary = token_view_vocabulary([*range(256)], [(97, 98)], [256], r"\s+|\S+")
    >>> vocabulary["pairs"], vocabulary["first"], vocabulary["pattern"]
    ('YQBiAA==', 256, '\\p{White_Space}+|\\P{White_Space}+')
    """
    if len(byte_ids) != 256:
        raise ValueError(f"byte_ids must have 256 ids, one a byte, but has {len(byte_ids)}")
    if list(products) != list(range(products[0], products[0] + len(pairs))):
        raise ValueError("products must be consecutive ids, one a pair: only then the pairs say all of the vocabulary")
    if products[-1] >= 2**16:
        raise ValueError(f"ids must be below 65,536, but the last one is {products[-1]}")
    return {
        "bytes": list(byte_ids),
        "first": products[0],
        "pairs": base64.b64encode(np.array(pairs, dtype="<u2").tobytes()).decode("ascii"),
        "pattern": pattern.replace(r"\s", r"\p{White_Space}").replace(r"\S", r"\P{White_Space}"),
    }


def token_view_script(vocabulary: dict[str, Any], about: str) -> str:
    """The script that hands a vocabulary to the part, with a line about where it comes from.

    Examples
    --------
    >>> print(token_view_script({"first": 256}, "Made by hand."), end="")
    // Made by hand.
    document.currentScript.content = {"first":256};
    """
    return f"// {about}\ndocument.currentScript.content = {json.dumps(vocabulary, separators=(',', ':'))};\n"
