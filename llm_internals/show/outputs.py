"""An object that Jupyter can display in several forms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Output:
    """One thing to show: its forms by MIME type, of which Jupyter takes the richest that it can draw.

    Examples
    --------
    >>> Output({"text/html": "<b>3</b>", "text/plain": "3"})
    3
    """

    data: Mapping[str, str]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def html(self) -> str:
        """The HTML form, to build one output into another."""
        return self.data["text/html"]

    def __repr__(self) -> str:
        return self.data["text/plain"]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        return dict(self.data), dict(self.metadata)
