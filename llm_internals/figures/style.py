"""How figures look: their size, their type, and the meaning of each colour.

The colours are those of Okabe and Ito (2008), "Color Universal Design", which people with any kind of colour vision can
tell apart. A colour means the same thing on every page, and never carries a meaning alone: a label or a shape says it
too.

Figures are drawn for a white page. In dark mode the page inverts them and turns the hues back, so that blue stays blue.
"""

from collections.abc import Callable
from functools import wraps
from io import BytesIO
from typing import Any, ParamSpec

import matplotlib
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

Parameters = ParamSpec("Parameters")

KEPT = "#0072B2"
"""Blue: what this page looks at; a candidate that is kept, the position that answers."""
CHOSEN = "#D55E00"
"""Vermilion: the token that was drawn, and the number that drew it."""
RIGHT = "#009E73"
"""Green: the right answer, or what a check expects."""
OTHER = "#CC79A7"
"""Purple: a second thing to follow beside the blue one."""
SOFT = "#C9DCEA"
"""Pale blue: kept, but not the one that was drawn."""
REMOVED = "#B8BDC4"
"""Grey: what was removed, or stands behind as context."""
INK = "#24292F"
"""Text and marks."""
FAINT = "#5F6770"
"""Axis labels and ticks: quieter than `INK`, still 5 : 1 on white."""
RULE = "#D9DDE1"
"""Hairlines."""

SIGNED = LinearSegmentedColormap.from_list("signed", ["#7A3300", CHOSEN, "#FFFFFF", KEPT, "#00314D"])
"""Vermilion for below zero, white for zero, blue for above."""
AMOUNT = LinearSegmentedColormap.from_list("amount", ["#FFFFFF", "#8CC4E4", KEPT, "#00314D"])
"""White for nothing, dark blue for most."""

WIDTH = 7.2
"""Inches. The page shows them as `PAGE_WIDTH` pixels, so 10 points of type become 14 pixels."""
PAGE_WIDTH = 720
DOTS_PER_INCH = 200
TEXT, SMALL = 10.5, 9.0
"""Points: ordinary text, and the smallest there is (12.5 pixels on the page)."""
MONOSPACE = "DejaVu Sans Mono"
"""The font of tokens, in which spaces can be told apart."""

RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": TEXT,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "axes.labelsize": TEXT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "axes.axisbelow": True,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.w_pad": 0.06,
}
"""Settings in which every figure is made. Text is never read as mathematics: a token may be a dollar sign."""


def styled(function: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Run a figure function under `RC`, and lay the figure out before the settings go back.

    Matplotlib makes tick labels only when it draws, from the settings of that moment; hence the layout here.
    """

    @wraps(function)
    def draw_styled(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        with matplotlib.rc_context(RC):
            figure = function(*args, **kwargs)
            figure.draw_without_rendering()
        return figure

    return draw_styled


def new_figure(height: int | float) -> Figure:
    """An empty figure as wide as the page and `height` inches high, known to no window and to no global state."""
    return Figure(figsize=(WIDTH, height))


def to_png(figure: Figure) -> bytes:
    """The figure as PNG: same figure, same bytes, since neither a date nor a version is written into it."""
    buffer = BytesIO()
    with matplotlib.rc_context(RC):
        figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()
