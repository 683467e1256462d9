"""Put a figure on a page, with caption and description, and the strip that says where on the way a chapter is."""

import base64
import re
from dataclasses import dataclass

from matplotlib.figure import Figure

from llm_internals.figures.pipeline import STAGES, strip
from llm_internals.figures.style import PAGE_WIDTH, to_png
from llm_internals.show.outputs import Output


@dataclass(frozen=True)
class CaptionedFigure:
    """A picture and its caption: two outputs in JupyterLab, one numbered figure in the book."""

    picture: Output
    caption: Output

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self.picture)
        display(self.caption)


def figure(drawing: Figure, *, name: str, caption: str, alt: str) -> CaptionedFigure:
    """A matplotlib figure as it appears on a page; `llm_internals.figures` says how the parts travel.

    Parameters
    ----------
    drawing : Figure
        What a function of `llm_internals.figures` returned.
    name : str
        ``fig-`` and lower-case words with hyphens; unique in the book, to refer to the figure by.
    caption : str
        Markdown in one paragraph: what to see.
    alt : str
        What the picture shows, in plain words, for someone who can't see it.

    Raises
    ------
    ValueError
        If the name has another form, or caption or alt is empty or has more than one line.
    """
    if not re.fullmatch(r"fig(-[a-z0-9]+)+", name):
        raise ValueError(
            f"name must be fig- and lower-case words joined by hyphens, such as fig-next-token, but is {name!r}"
        )
    for label, text in (("caption", caption), ("alt", alt)):
        if not text.strip() or "\n" in text:
            raise ValueError(f"{label} must be one line of text, but is {text!r}")
    png = base64.b64encode(to_png(drawing)).decode("ascii")
    metadata = {
        "figure": {"name": name, "caption": caption, "alt": alt},
        "image/png": {"width": PAGE_WIDTH, "alt": alt},
        "needs_background": "light",  # JupyterLab's dark theme then puts a white ground under the picture
    }
    return CaptionedFigure(
        Output({"image/png": png, "text/plain": alt}, metadata),
        Output({"text/markdown": caption, "text/plain": caption}, {"caption_of": name}),
    )


def pipeline(*stages: int) -> Output:
    """The strip with these stages lit; none given lights all of them.

    Parameters
    ----------
    *stages : int
        Numbers from 1 (tokenize) to 7 (loop).

    Examples
    --------
    >>> pipeline(4)
    prompt → 1 tokenize → 2 embed → 3 forward pass → [4 logits] → 5 sample → 6 detokenize → 7 loop
    """
    lit = stages or tuple(stage.number for stage in STAGES)
    plain = " → ".join(f"[{stage.label}]" if stage.number in stages else stage.label for stage in STAGES)
    return Output({"text/html": strip(lit), "text/plain": f"prompt → {plain}"})
