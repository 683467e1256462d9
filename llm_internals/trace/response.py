"""Stage 8: a whole response as one object that can be saved, loaded without the model, and turned into a page.

The file is JSON with a version; a reader that doesn't know the version refuses it. What is loaded equals what was
saved.

Leaves out the weights and the model's name: what a trace says can be looked at anywhere, and repeated where the model
is.

Chapter: ``00_one_response``.
Source: RFC 8259, "The JavaScript Object Notation (JSON) data interchange format".
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from llm_internals.config import LlamaConfig
from llm_internals.sampling import SamplingParams
from llm_internals.trace.atomic_write import write_text
from llm_internals.trace.checked_json import TraceError, Value, parse_json
from llm_internals.trace.page import page
from llm_internals.trace.steps import TracedStep

FORMAT, VERSION = "llm_internals.trace", 1
MAX_FILE_BYTES = 2**28
"""Longest file that is read: 256 MiB, some ten thousand steps."""

MAX_SIZE = 2**31 - 1
"""Largest size in a model's shape that is read."""


@dataclass(frozen=True)
class Trace:
    """A response, from the prompt to the reason for stopping.

    Attributes
    ----------
    config : LlamaConfig
        The shape of the model.
    prompt : str
        The text that the model saw; a conversation as its template renders it.
    prompt_ids : tuple of int
    params : SamplingParams
    max_tokens : int
    stop : tuple of str
        The stop strings.
    steps : tuple of TracedStep
    tokens : mapping of int to bytes
        The bytes of every token that the trace mentions.
    special_ids : frozenset of int
        Which of them are special tokens.
    """

    config: LlamaConfig
    prompt: str
    prompt_ids: tuple[int, ...]
    params: SamplingParams
    max_tokens: int
    stop: tuple[str, ...]
    steps: tuple[TracedStep, ...]
    tokens: Mapping[int, bytes] = field(repr=False)
    special_ids: frozenset[int] = field(repr=False)

    @property
    def text(self) -> str:
        """The response."""
        return "".join(step.piece for step in self.steps)

    @property
    def stop_reason(self) -> str | None:
        """Why it ended: "eos", "stop", "length" or "context"; None if no step was asked for."""
        return self.steps[-1].stop_reason if self.steps else None

    def ids(self) -> Iterator[int]:
        """Every token that the trace mentions."""
        yield from self.prompt_ids
        for step in self.steps:
            yield from step.ids()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON in UTF-8: the file is there whole or not at all.

        Raises
        ------
        OSError
            It can't be written there; the message has the path and the reason.
        """
        write_text(path, json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Trace":
        """Read what `save` wrote, from wherever it comes.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        TraceError
            It isn't a trace, or one of another version; the message names the key.
        """
        size = Path(path).stat().st_size
        if size > MAX_FILE_BYTES:
            raise TraceError(f"the file must be at most {MAX_FILE_BYTES} bytes long, but has {size}")
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise TraceError(f"the file must be JSON in UTF-8, but {error.reason} at byte {error.start}") from error
        return cls.from_json(parse_json(text))

    def to_html(self) -> str:
        """One self-contained page to step through the response, token by token, stage by stage, layer by layer.

        It needs no network and no other file.

        Raises
        ------
        ValueError
            The trace has no steps.
        """
        if not self.steps:
            raise ValueError("the trace must have at least one step to make a page of, but max_tokens was 0")
        return page(f"{self.prompt[-60:]}{self.text}", self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The trace as JSON has it."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "config": asdict(self.config),
            "prompt": self.prompt,
            "prompt_ids": list(self.prompt_ids),
            "params": asdict(self.params),
            "max_tokens": self.max_tokens,
            "stop": list(self.stop),
            "tokens": {str(id): _token_to_json(self.tokens[id]) for id in sorted(self.tokens)},
            "special_ids": sorted(self.special_ids),
            "steps": [step.to_json() for step in self.steps],
        }

    @classmethod
    def from_json(cls, value: Value) -> "Trace":
        """The trace, checked: each part by itself, and that they fit together."""
        _check_version(value.entries())
        names = (name for name in cls.__dataclass_fields__)
        fields = value.fields("format", "version", *names)
        config, params = _config(fields["config"]), _params(fields["params"])
        prompt_ids = tuple(id.integer(0, config.vocab_size - 1) for id in fields["prompt_ids"].items())
        if not prompt_ids:
            raise fields["prompt_ids"].error("a list of at least one token")
        steps = tuple(
            TracedStep.from_json(step, config, params, position=len(prompt_ids) + index)
            for index, step in enumerate(fields["steps"].items())
        )
        loaded = cls(
            config=config,
            prompt=fields["prompt"].text(),
            prompt_ids=prompt_ids,
            params=params,
            max_tokens=fields["max_tokens"].integer(len(steps)),
            stop=tuple(stop.text() for stop in fields["stop"].items()),
            steps=steps,
            tokens=_tokens(fields["tokens"], config.vocab_size),
            special_ids=frozenset(id.integer(0, config.vocab_size - 1) for id in fields["special_ids"].items()),
        )
        _check_whole(loaded)
        return loaded


def _check_version(entries: Mapping[str, Value]) -> None:
    """Look at the version before anything that may differ between versions."""
    for name, known in (("format", FORMAT), ("version", VERSION)):
        if name not in entries:
            raise TraceError(f"{name} is missing: a trace says {json.dumps(name)}: {json.dumps(known)}")
        if entries[name].raw != known or type(entries[name].raw) is not type(known):
            raise entries[name].error(f"{json.dumps(known)}, the only one that this program reads")


def _check_whole(loaded: Trace) -> None:
    """What no part can know by itself."""
    missing = set(loaded.ids()) - set(loaded.tokens)
    if missing:
        raise TraceError(f"tokens must have every token that the trace mentions, but lacks {min(missing)}")
    for index, step in enumerate(loaded.steps):
        is_last = index == len(loaded.steps) - 1
        if (step.stop_reason is not None) != is_last:
            raise TraceError(f"steps[{index}].stop_reason must be set on the last step and on no other")


def _config(value: Value) -> LlamaConfig:
    """The shape of the model, which checks itself, but for how large it may be."""
    fields = value.fields(*LlamaConfig.__dataclass_fields__)
    for entry in fields.values():
        if type(entry.raw) is int:
            entry.integer(1, MAX_SIZE)
    try:
        return LlamaConfig(**{name: entry.raw for name, entry in fields.items()})
    except ValueError as error:
        raise TraceError(f"config: {error}") from error


def _params(value: Value) -> SamplingParams:
    """The settings, which check themselves; JSON has only strings as keys, so a bias's token id is read from one."""
    fields = value.fields(*SamplingParams.__dataclass_fields__)
    settings = {name: entry.raw for name, entry in fields.items()}
    for name in ("banned_ids", "order"):
        settings[name] = [entry.raw for entry in fields[name].items()]
    if settings["logit_bias"] is not None:
        biases = fields["logit_bias"].entries()
        settings["logit_bias"] = {_id(entry, name): entry.raw for name, entry in biases.items()}
    try:
        return SamplingParams(**settings)
    except (ValueError, TypeError, OverflowError) as error:  # the last from a whole number beyond the largest float
        raise TraceError(f"params: {error}") from error


def _tokens(value: Value, vocab_size: int) -> dict[int, bytes]:
    """The bytes of tokens by id."""
    found = {}
    for name, entry in value.entries().items():
        id = _id(entry, name)
        if id >= vocab_size:
            raise TraceError(f"{entry.key} must be below the vocabulary's size {vocab_size}")
        found[id] = _token_from_json(entry)
    return found


def _id(entry: Value, name: str) -> int:
    """A token id from a key, written as Python writes it: no sign, no leading zero."""
    if not (name.isascii() and name.isdecimal() and len(name) <= 9 and str(int(name)) == name):
        raise TraceError(f"{entry.key} must have a token id as its key, written in decimal digits")
    return int(name)


def _token_to_json(token: bytes) -> str | list[int]:
    """Text where the bytes are UTF-8, or else the bytes: a token may be a part of a character."""
    try:
        return token.decode("utf-8")
    except UnicodeDecodeError:
        return list(token)


def _token_from_json(value: Value) -> bytes:
    """The bytes of a token, from the one form that `_token_to_json` gives them."""
    if isinstance(value.raw, list):
        token = bytes(byte.integer(0, 255) for byte in value.items())
    else:
        token = value.text().encode("utf-8", errors="replace")  # a lone surrogate becomes a question mark, and differs
    if _token_to_json(token) != value.raw:
        raise value.error("text, or a list of bytes where they aren't UTF-8")
    return token
