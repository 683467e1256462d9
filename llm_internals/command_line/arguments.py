"""Command line: what can be asked for, with the range of every option.

The sampling options are the settings of `SamplingParams`, under the same names; it checks their values.

Chapter: ``00_one_response``.
Source: Python's ``argparse``; POSIX.1-2017, "Utility conventions", chapter 12.
"""

import argparse
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from llm_internals.sampling import ORDERS, SamplingParams

CHAT_TEMPERATURE, CHAT_TOP_P = 0.2, 0.9
"""What ``chat`` samples with by default: at a temperature of 1 a model of this size soon talks nonsense."""

SAMPLING_OPTIONS: tuple[tuple[str, Callable[[str], Any], str, str], ...] = (
    ("temperature", float, "T", "divide the logits by T; at least 0, and 0 takes the likeliest token"),
    ("top_k", int, "K", "keep the K likeliest tokens; at least 0, and 0 is off"),
    ("top_p", float, "P", "keep the fewest likeliest tokens that reach probability P; from 0 to 1, and 1 is off"),
    ("min_p", float, "P", "keep tokens at least P times as likely as the likeliest; from 0 to 1, and 0 is off"),
    ("typical_p", float, "P", "keep the tokens nearest to the entropy that reach P; from 0 to 1, and 1 is off"),
    (
        "repetition_penalty",
        float,
        "X",
        "divide positive logits of seen tokens by X, multiply others; above 0, and 1 is off",
    ),
    ("presence_penalty", float, "X", "subtract X from the logit of each token in the output; any number, and 0 is off"),
    ("frequency_penalty", float, "X", "subtract X for each time a token is in the output; any number, and 0 is off"),
    ("no_repeat_ngram_size", int, "N", "let no N tokens in a row occur twice; at least 0, and 0 is off"),
)


class OneLineParser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong, and where help is."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all three commands."""
    parser = OneLineParser(
        prog="llm_internals",
        description="See what happens inside a language model, on SmolLM2-135M-Instruct.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="trace | chat | tokenize")
    _add_trace(commands)
    _add_chat(commands)
    _add_tokenize(commands)
    return parser


def sampling_params(args: argparse.Namespace) -> SamplingParams:
    """The settings of the options.

    Raises
    ------
    ValueError
        A value is out of range; the message names the setting.
    """
    settings = {name: getattr(args, name) for name, *_ in SAMPLING_OPTIONS}
    biases = dict(args.logit_bias) if args.logit_bias else None
    return SamplingParams(
        **settings, logit_bias=biases, banned_ids=tuple(args.banned_id), seed=args.seed, order=ORDERS[args.order]
    )


def positive(text: str) -> int:
    """A whole number of at least 1."""
    number = _number(int, text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text}")
    return number


def nonempty(text: str) -> str:
    """A text of at least one character."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def bias(text: str) -> tuple[int, float]:
    """A token's id and a number, as ``16570=-2.5``."""
    id, separator, number = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"must be ID=NUMBER, such as 16570=-2.5, got {text!r}")
    return _number(int, id), _number(float, number)


def _number(kind: type, text: str) -> Any:
    """A number of a kind, or argparse's own error."""
    try:
        return kind(text)
    except ValueError:
        name = "an integer" if kind is int else "a number"
        raise argparse.ArgumentTypeError(f"must be {name}, got {text!r}") from None


def _add_trace(commands: Any) -> None:
    """``trace``: a prompt, or a file that was recorded before."""
    parser = _command(
        commands,
        "trace",
        "Generate a response and print, stage by stage, how each token came about.",
        'llm_internals trace "The capital of Australia is" --temperature 0.7 --top-p 0.9 --html page.html',
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("prompt", nargs="?", metavar="PROMPT", help="text to go on with; a dash reads it from stdin")
    source.add_argument(
        "--replay", type=Path, metavar="PATH", help="show a trace that was written with --json; needs no model"
    )
    parser.add_argument(
        "--chat", action="store_true", help="answer the prompt as a chat message, in the model's template"
    )
    parser.add_argument("--system", metavar="TEXT", help="the system message of the chat; implies --chat")
    parser.add_argument(
        "--html", type=Path, metavar="PATH", help="write one self-contained page to step through the response"
    )
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="write the trace as JSON, for --replay and Trace.load"
    )
    _add_generation(parser, max_tokens=10)


def _add_chat(commands: Any) -> None:
    """``chat``: a conversation."""
    parser = _command(
        commands,
        "chat",
        "Talk with the model. /new begins another conversation, /quit or Ctrl-D leaves, Ctrl-C stops an answer.",
        "llm_internals chat --temperature 0.2 --top-p 0.9",
    )
    parser.add_argument("--system", metavar="TEXT", help="the system message; without it, the template's own")
    _add_generation(parser, max_tokens=512, temperature=CHAT_TEMPERATURE, top_p=CHAT_TOP_P)


def _add_tokenize(commands: Any) -> None:
    """``tokenize``: a text."""
    parser = _command(
        commands, "tokenize", "Print the tokens of a text: pieces, ids, bytes.", 'llm_internals tokenize "unbelievable"'
    )
    parser.add_argument("text", metavar="TEXT", help="the text; a dash reads it from stdin")
    parser.add_argument("--special", action="store_true", help="let <|im_end|> and the like become special tokens")
    _add_weights(parser)


def _command(commands: Any, name: str, description: str, example: str) -> argparse.ArgumentParser:
    """A command with its help."""
    return commands.add_parser(
        name,
        help=description,
        description=description,
        epilog=f"example:\n{textwrap.indent(example, '  python -m ')}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_generation(parser: argparse.ArgumentParser, max_tokens: int, **defaults: float) -> None:
    """Options of everything that generates."""
    _add_weights(parser)
    parser.add_argument(
        "--max-tokens",
        type=positive,
        default=max_tokens,
        metavar="N",
        help=f"stop after N tokens; at least 1 (default {max_tokens})",
    )
    parser.add_argument(
        "--stop",
        type=nonempty,
        action="append",
        default=[],
        metavar="TEXT",
        help="stop before this text, not empty; may be given several times",
    )
    group = parser.add_argument_group(
        "sampling", "Which token is chosen; by default, from the distribution of the model as it is."
    )
    for name, kind, metavar, text in SAMPLING_OPTIONS:
        default = defaults.get(name, SamplingParams.__dataclass_fields__[name].default)
        option = f"--{name.replace('_', '-')}"
        group.add_argument(option, type=kind, default=default, metavar=metavar, help=f"{text} (default {default})")
    group.add_argument(
        "--logit-bias",
        type=bias,
        action="append",
        metavar="ID=X",
        help="add X, any number, to the logit of a token id; may be given several times",
    )
    group.add_argument(
        "--banned-id",
        type=int,
        action="append",
        default=[],
        metavar="ID",
        help="never choose this token id; may be given several times",
    )
    group.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="an integer of at least 0: the same seed gives the same response (default: none)",
    )
    group.add_argument(
        "--order",
        choices=ORDERS,
        default="transformers",
        help=f"the engine whose order of operators is used: {', '.join(ORDERS)} (default transformers)",
        metavar="ENGINE",
    )


def _add_weights(parser: argparse.ArgumentParser) -> None:
    """Which model."""
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="PATH",
        help="a Llama model's GGUF file (default: SmolLM2-135M-Instruct, fetched if need be)",
    )
