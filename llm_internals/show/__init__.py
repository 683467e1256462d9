"""What pages share: the package's own source, numbers that stay true, tables, tokens, figures, interactive parts.

Every function returns an object that displays itself when it stands last in a cell, in JupyterLab and in the built
book; in the middle of a cell, wrap it in IPython's ``display(...)``. The exception is `number`, which returns text.

The outputs are the same bytes at every run: no random ids, no addresses, no paths of this machine. Each carries the few
styles that it needs to be read anywhere; the book's style sheet adds the rest. All text is escaped.

Leaves out the pictures themselves, which `llm_internals.figures` draws.
"""

from llm_internals.show.chips import tokens
from llm_internals.show.numbers import NOISE, number
from llm_internals.show.outputs import Output
from llm_internals.show.pictures import figure, pipeline
from llm_internals.show.sources import source
from llm_internals.show.tables import flow, table
from llm_internals.show.widgets import interactive

__all__ = ["NOISE", "Output", "figure", "flow", "interactive", "number", "pipeline", "source", "table", "tokens"]
