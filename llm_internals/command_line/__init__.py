"""Command line: the arguments -> a response traced, a conversation, or the tokens of a text; and an exit code.

0 is success; 1 means that something outside failed (a disk, a network), 2 that the request can't be met as it stands,
130 that Ctrl-C ended it, 141 that whoever read the output went away. An error is a line on stderr and no traceback.

`arguments` reads the options, `terminal` prints, `conversation` talks.

Chapter: ``00_one_response``.
Source: Python's ``argparse``; the exit codes of POSIX shells, 128 + the number of the signal.
"""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from llm_internals.checkpoint import load_checkpoint
from llm_internals.command_line import terminal
from llm_internals.command_line.arguments import build_parser, sampling_params
from llm_internals.command_line.conversation import Conversation, talk
from llm_internals.config import LlamaConfig
from llm_internals.gguf import read_gguf
from llm_internals.model_metadata import read_tokenizer
from llm_internals.trace import Trace, TracedStep, trace
from llm_internals.trace.atomic_write import write_text
from llm_internals.trace.recording import read_prompt
from llm_internals.weights_file import find_weights

FAILED, REFUSED, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process if None.

    Returns
    -------
    The exit code. What argparse ends by itself, ``--help`` and unreadable options, raises SystemExit as usual.
    """
    tolerate_narrow_encodings()
    parser = build_parser()
    args = parser.parse_args(argv)
    commands = {"trace": run_trace, "chat": run_chat, "tokenize": run_tokenize}
    try:
        commands[args.command](args)
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        silence_stdout()
        return PIPE_CLOSED
    except (ValueError, FileNotFoundError) as error:
        return complain(args, error, REFUSED)
    except OSError as error:
        return complain(args, error, FAILED)


def run_trace(args: argparse.Namespace) -> None:
    """Record a response, or read a recorded one; print it stage by stage; write what was asked for."""
    check_targets(args.html, args.json)
    console = terminal.make_console()
    if args.replay is not None:
        recorded = Trace.load(args.replay)
        show = step_printer(console, recorded.prompt, recorded.prompt_ids, recorded.config, recorded.tokens.__getitem__)
        for step in recorded.steps:
            show(step)
    else:
        recorded = record(args, console)
    terminal.show_end(console, recorded)
    for path, make in ((args.json, recorded.save), (args.html, lambda path: write_text(path, recorded.to_html()))):
        if path is not None:
            make(path)
            terminal.show_written(console, path)


def record(args: argparse.Namespace, console: terminal.Terminal) -> Trace:
    """Generate, and print each step as soon as it is there."""
    params = sampling_params(args)
    prompt = read_text(args.prompt)
    if args.chat or args.system is not None:
        system = [] if args.system is None else [{"role": "system", "content": args.system}]
        prompt = [*system, {"role": "user", "content": prompt}]
    lm = load_checkpoint(args.weights)
    text, prompt_ids = read_prompt(lm, prompt)
    if not prompt_ids:
        raise ValueError(
            "the prompt must have at least one character, but is empty: the first token needs something to follow"
        )
    show = step_printer(console, text, prompt_ids, lm.config, lm.tokenizer.token_bytes)
    return trace(lm, prompt, params, max_tokens=args.max_tokens, stop=args.stop, on_step=show)


def step_printer(
    console: terminal.Terminal,
    text: str,
    prompt_ids: Sequence[int],
    config: LlamaConfig,
    token_bytes: Callable[[int], bytes],
) -> Callable[[TracedStep], None]:
    """Print the prompt, and return what prints the steps that follow it, one at a time."""
    ids = list(prompt_ids)
    terminal.show_prompt(console, text, ids, token_bytes)

    def show(step: TracedStep) -> None:
        terminal.show_step(console, step, ids, config, token_bytes)
        ids.append(step.id)

    return show


def run_chat(args: argparse.Namespace) -> None:
    """Talk until the user leaves."""
    params = sampling_params(args)
    lm = load_checkpoint(args.weights)
    talk(terminal.make_console(), Conversation(lm, params, args.max_tokens, args.stop, args.system), input)


def run_tokenize(args: argparse.Namespace) -> None:
    """Print the tokens of a text. Only the tokenizer is read, not the weights."""
    tokenizer = read_tokenizer(read_gguf(find_weights(args.weights)))
    text = read_text(args.text)
    ids = tokenizer.encode(text, allow_special=args.special)
    terminal.show_tokens(terminal.make_console(), text, ids, tokenizer.token_bytes)


def read_text(argument: str) -> str:
    """The argument, or what comes in on stdin if it is a dash."""
    return sys.stdin.read() if argument == "-" else argument


def check_targets(*paths: Path | None) -> None:
    """Find out before the work, and not after it, that there is no place for the result."""
    for path in paths:
        if path is not None and path.is_dir():
            raise ValueError(f"can't write to {str(path)!r}: it is a folder")
        if path is not None and not path.parent.is_dir():
            raise FileNotFoundError(f"can't write to {str(path)!r}: there is no folder {str(path.parent)!r}")


def complain(args: argparse.Namespace, error: Exception, code: int) -> int:
    """Say on stderr what went wrong; of an error of the operating system, its words and the path."""
    said = f"{error.strerror}: {error.filename!r}" if isinstance(error, OSError) and error.filename else str(error)
    sys.stderr.write(f"llm_internals {args.command}: {said}\n")
    return code


def tolerate_narrow_encodings() -> None:
    """Where the terminal's encoding lacks a character, print a question mark instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def silence_stdout() -> None:
    """Let Python flush what is left of the output to nowhere when it ends, since no one reads it."""
    if sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
