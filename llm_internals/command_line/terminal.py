"""Command line: a trace -> lines on a terminal, stage by stage.

Everything that comes from a model or a file is printed as text: no markup is read in it, and control characters, which
could move the cursor or change colours, are spelt out. Colours follow the terminal and the variable ``NO_COLOR``.

Chapter: ``00_one_response``.
Source: rich's documentation, "Console API"; no-color.org.
"""

from collections.abc import Callable, Sequence, Sized
from pathlib import Path
from typing import NoReturn

import numpy as np
from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from llm_internals.config import LlamaConfig
from llm_internals.figures.labels import visible
from llm_internals.trace import OperatorStep, Trace, TracedStep

TokenBytes = Callable[[int], bytes]

CANDIDATES = 5
"""How many of the likeliest tokens are printed at a step."""
ATTENDED = 4
"""How many of the positions that attention went to are printed."""
LENS_LAYERS = 6
"""How many of the last layers the logit lens prints."""
WIDEST_TOKEN = 24
"""Columns that tokens are lined up in; the few that are wider push their line to the right."""
RAMP = "▁▂▃▄▅▆▇█"
NARROW = 60
"""Columns of a terminal below which names and contents no longer stand side by side."""
STAGE, CHOSEN, QUIET = "bold cyan", "bold dark_orange", "dim"
REASONS = {
    "eos": "the model chose an end token",
    "stop": "a stop string is complete",
    "length": "as many tokens as were asked for are there",
    "context": "there is no room for another token",
}


class Terminal(Console):
    """A console for text that nobody vouches for."""

    def on_broken_pipe(self) -> NoReturn:
        """Let `main` decide what a closed pipe means."""
        raise BrokenPipeError

    def stream(self, text: str) -> None:
        """Print running text at once and as it is: not wrapped, tabs and all."""
        self.file.write(printable(text))
        self.file.flush()

    def note(self, text: str, end: str = "\n") -> None:
        """Print a remark of the program."""
        self.print(Text(printable(text)), style=QUIET, end=end)


def make_console() -> Terminal:
    """A console on stdout as it is now."""
    return Terminal(highlight=False, markup=False, emoji=False)


def printable(text: str) -> str:
    r"""Running text with all control characters spelt out, but for line feeds and tabs.

    >>> print(printable("red: \x1b[31m"))
    red: \u001b[31m
    """
    return "".join(
        character if character.isprintable() or character in "\n\t" else f"\\u{ord(character):04x}"
        for character in text
    )


def show_tokens(console: Terminal, text: str, ids: Sequence[int], token_bytes: TokenBytes) -> None:
    """The tokens of a text, a line each: plain lines, since a text may be a book and a reader may leave early."""
    spelt_out = [visible(token_bytes(id)) for id in ids]
    width = max([5, *(min(cell_len(token), WIDEST_TOKEN) for token in spelt_out)])
    if ids:
        console.print(f"position  {'token':<{width}}     id  bytes", style=QUIET, soft_wrap=True)
    for position, (id, token) in enumerate(zip(ids, spelt_out, strict=True)):
        gap = " " * (width - cell_len(token))
        console.stream(f"{position:>8}  {token}{gap}  {id:>5}  {token_bytes(id).hex(' ')}\n")
    size = sum(len(token_bytes(id)) for id in ids)
    console.note(f"{counted(len(text), 'character')}, {counted(size, 'byte')}, {counted(len(ids), 'token')}")


def show_prompt(console: Terminal, text: str, ids: Sequence[int], token_bytes: TokenBytes) -> None:
    """Stage 1, which happens once."""
    chips = [Text.assemble((visible(token_bytes(id)), "bold"), "\n", (str(id), QUIET)) for id in ids]
    line = f"{counted(len(text), 'character')} become {counted(len(ids), 'token')}:"
    console.print(stages([("1 tokenize", Group(Text(line), Columns(chips, padding=(0, 1))))], console.width))


def show_step(
    console: Terminal, step: TracedStep, ids: Sequence[int], config: LlamaConfig, token_bytes: TokenBytes
) -> None:
    """Stages 2 to 7 for one token, which was chosen after those of ``ids``."""
    active = [operator_line(operator) for operator in step.operators if operator.active]
    console.print()
    console.rule(
        Text.assemble(f"position {step.position}: ", spelt(step.id, token_bytes, CHOSEN)), style=QUIET, align="left"
    )
    norms = f"length {step.residual_norms[0]:.3g} {sparkline(step.residual_norms)} {step.residual_norms[-1]:.3g}"
    rows: list[tuple[str, RenderableType]] = [
        ("2 embed", Text.assemble(spelt(ids[-1], token_bytes), f" goes in, a vector of {config.hidden_size} numbers")),
        ("3 forward pass", Text(f"{norms}, through {config.num_hidden_layers} blocks")),
        ("", looked_at(step, ids, token_bytes)),
        ("4 logits", Group(lens_line(step, token_bytes), candidates(step, token_bytes, console.width))),
        ("5 sample", Group(*(active or [Text("no operator is on: every token may come")]))),
        ("", drawn(step, token_bytes)),
        ("6 detokenize", Text(f"{token_bytes(step.id).hex(' ')} → {printable(step.piece)!r}")),
        ("7 loop", Text(f"stops: {REASONS[step.stop_reason]}" if step.stop_reason else "goes on")),
    ]
    console.print(stages(rows, console.width))


def show_end(console: Terminal, recorded: Trace) -> None:
    """The response, and why it ended."""
    console.print()
    console.rule(Text("the response"), style=QUIET, align="left")
    console.print(Text(printable(recorded.text)), soft_wrap=True)
    console.note(f"{counted(len(recorded.steps), 'token')}; {REASONS[recorded.stop_reason or 'length']}")


def show_written(console: Terminal, path: Path) -> None:
    """Where a file went, on one line, so that the path can be copied."""
    console.print(Text(printable(f"written: {path}")), style=QUIET, soft_wrap=True)


def stages(rows: Sequence[tuple[str, RenderableType]], width: int) -> RenderableType:
    """Names of stages on the left, what they did on the right; one above the other where that is too narrow."""
    if width < NARROW:
        lines = [(Text(name, style=STAGE) if name else None, Padding(what, (0, 0, 0, 2))) for name, what in rows]
        return Group(*(part for pair in lines for part in pair if part is not None))
    table = Table.grid(padding=(0, 2))
    table.add_column(style=STAGE, no_wrap=True)
    table.add_column(ratio=1)
    for name, what in rows:
        table.add_row(name, what)
    return table


def looked_at(step: TracedStep, ids: Sequence[int], token_bytes: TokenBytes) -> Text:
    """Where attention went, on average over all heads of all layers."""
    mean = step.attention.weights().mean(axis=(0, 1))
    line = Text(f"attention, mean of {step.attention.layers} × {step.attention.heads} heads: ", style=QUIET)
    for position in np.argsort(-mean, kind="stable")[:ATTENDED]:
        line.append_text(spelt(ids[position], token_bytes)).append(f" {mean[position]:.2f}  ")
    return line


def lens_line(step: TracedStep, token_bytes: TokenBytes) -> Text:
    """What the last layers would have said."""
    line = Text("after block ", style=QUIET)
    last = len(step.lens) - 1
    for index in range(max(1, last - LENS_LAYERS + 1), last + 1):
        style = CHOSEN if step.lens[index].rank == 1 else ""
        line.append(f"{index - 1} ").append_text(spelt(step.lens[index].top[0][0], token_bytes, style)).append("  ")
    return line


def candidates(step: TracedStep, token_bytes: TokenBytes, width: int) -> Table:
    """The likeliest tokens at T = 1."""
    table = Table(box=None, pad_edge=False, header_style=QUIET)
    table.add_column("token", overflow="fold")
    table.add_column("logit", justify="right", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, overflow="crop")
    longest = max(5, min(30, width // 4))
    for id, logit in step.top_logits[:CANDIDATES]:
        p = min(1.0, float(np.exp(logit - step.log_normalizer)))
        style = CHOSEN if id == step.id else ""
        bar = Text("█" * round(longest * p), style=style or "blue")
        table.add_row(spelt(id, token_bytes, style), f"{logit:.2f}", f"{p:.3f}", bar)
    return table


def operator_line(operator: OperatorStep) -> Text:
    """What one operator left."""
    setting = counted(len(operator.setting), "token") if isinstance(operator.setting, Sized) else operator.setting
    line = Text.assemble(f"{operator.name} ", (str(setting), "bold"))
    if operator.after == operator.before:
        return line.append(f": keeps all {operator.after:,}")
    return line.append(
        f": {operator.before:,} → {operator.after:,}, without {100 * operator.removed_mass:.2g} % of the probability"
    )


def drawn(step: TracedStep, token_bytes: TokenBytes) -> Text:
    """The number and its bin."""
    chosen = spelt(step.id, token_bytes, CHOSEN)
    if step.u is None:
        return Text("nothing is drawn, the largest score wins: ").append_text(chosen)
    return Text(f"u = {step.u:.4f} lies in [{step.bin[0]:.4f}, {step.bin[1]:.4f}): ").append_text(chosen)


def spelt(id: int, token_bytes: TokenBytes, style: str = "") -> Text:
    """A token so that all of it can be seen."""
    return Text(visible(token_bytes(id)), style=style)


def sparkline(numbers: Sequence[float]) -> str:
    """Numbers as a row of blocks, on a logarithmic scale.

    >>> sparkline([1.0, 10.0, 100.0])
    '▁▄█'
    """
    logs = np.log10(np.maximum(numbers, 1e-9))
    low, high = logs.min(), logs.max()
    steps = (logs - low) / (high - low or 1.0) * (len(RAMP) - 1)
    return "".join(RAMP[int(step)] for step in steps)


def counted(number: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "token"), counted(49152, "token")
    ('1 token', '49,152 tokens')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
