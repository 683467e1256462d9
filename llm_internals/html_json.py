"""Stage 8: data -> JSON that can stand inside a page.

A token may be ``</script>``: written into a page as it is, it would end the script that it is data for.

Leaves out everything that JSON has no form for, as NaN and NumPy's arrays: those raise.

Chapter: ``00_one_response``; every page with an interactive part.
Source: HTML Living Standard, section 4.12.1.3, "Restrictions for contents of script elements".
"""

import json
from typing import Any


def json_for_html(data: Any) -> str:
    """JSON that can stand inside a script element: neither its end nor a comment can begin in it.

    Raises
    ------
    ValueError
        If ``data`` holds something that JSON has no form for.

    Examples
    --------
    >>> print(json_for_html({"piece": "</script>", "p": 0.5}))
    {"piece":"\\u003c/script\\u003e","p":0.5}
    """
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"data must be plain JSON (no NaN, no arrays of NumPy): {error}") from error
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
