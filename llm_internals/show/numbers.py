"""Print a number so that every digit on the page is true on every computer."""

import math
from typing import SupportsFloat

NOISE = 1e-4
"""How far a computed number may move from one CPU to another, twice over.

Float32 logits of this model differ by up to 5e-5 between instruction sets, numbers of threads and ways of using the
cache; a probability moves by at most half as much as the difference of two logits. `number` keeps a distance of 1e-4
from both.
"""


def number(x: SupportsFloat, decimals: int, *, noise: float = NOISE) -> str:
    """`x` with `decimals` digits after the point, if no digit depends on the CPU.

    A value next to a rounding edge (halfway between two numbers with that many digits) may print differently elsewhere,
    and a stored page would no longer be true there. At 3 decimals that concerns one value in five, at 2 decimals one in
    fifty.

    Parameters
    ----------
    x : number
    decimals : int
        Digits after the point, 0 or more. Probabilities take 3 or 2, logits 2 or 1.
    noise : float
        How far `x` may be off, in the unit of `x`; 0.0 or a smaller bound for what is known better.

    Raises
    ------
    ValueError
        If `x` is not finite; if `noise` leaves no digit to promise at this many decimals; or if `x` lies within `noise`
        of a rounding edge: print fewer decimals, or another number.

    Examples
    --------
    >>> number(0.34127, 3), number(-0.00001, 2)
    ('0.341', '0.00')
    >>> number(0.34153, 3)
    Traceback (most recent call last):
    ...
    ValueError: x = 0.34153 lies within 0.0001 of a rounding edge at 3 decimals: print fewer decimals, or another number
    """
    x, step = float(x), 10.0 ** -int(decimals)
    if decimals < 0:
        raise ValueError(f"decimals must be 0 or more, but is {decimals}")
    if not math.isfinite(x):
        raise ValueError(f"x must be finite, but is {x}")
    if not 0 <= noise < step / 2:
        raise ValueError(f"noise must be at least 0 and below {step / 2:g} for {decimals} decimals, but is {noise:g}")
    if abs(x - (math.floor(x / step) + 0.5) * step) <= noise:
        raise ValueError(
            f"x = {x:.7g} lies within {noise:g} of a rounding edge at {decimals} decimals: "
            "print fewer decimals, or another number"
        )
    text = f"{x:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text
