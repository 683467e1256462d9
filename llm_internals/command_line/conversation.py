"""Command line: lines of a user -> answers, as they come.

The cache is kept between turns: what it holds of the conversation isn't computed again. It grows as the conversation
does, so that a short one needs little memory.

Chapter: ``00_one_response``, ``03c_kv_cache``.
Source: transformers ``cli/chat.py``, ``ChatCLI``.
"""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from llm_internals.chat import Message, encode_chat
from llm_internals.checkpoint import LanguageModel
from llm_internals.command_line.terminal import REASONS, Terminal
from llm_internals.config import LlamaConfig
from llm_internals.generate import Step, generate
from llm_internals.kv_cache import KVCache
from llm_internals.sampling import SamplingParams
from llm_internals.tokenizer import UnencodableError

FIRST_CAPACITY = 512
"""Positions that the first cache has room for, 24 MB of this model's."""


@dataclass
class Conversation:
    """What was said so far, and the cache that holds it."""

    lm: LanguageModel
    params: SamplingParams
    max_tokens: int
    stop: Sequence[str] = ()
    system: str | None = None
    messages: list[Message] = field(default_factory=list)
    cache: KVCache | None = None

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget what was said. The cache finds out by itself what it can still use."""
        self.messages = [] if self.system is None else [{"role": "system", "content": self.system}]

    def answer(self, text: str) -> Generator[Step, None, None]:
        """Say something; yields the answer's steps, and keeps as much of it as was heard.

        Raises
        ------
        ValueError
            The text can't be encoded, or the conversation has no room for it. It is then as if nothing had been said.
        """
        asked = [*self.messages, {"role": "user", "content": text}]
        ids = encode_chat(self.lm.tokenizer, asked)
        context = self.lm.config.max_position_embeddings
        if len(ids) > context:
            raise ValueError(
                f"the conversation would have {len(ids)} tokens, but there is room for {context}: /new begins another"
            )
        self.cache = with_room(self.cache, self.lm.config, min(len(ids) + self.max_tokens, context))
        pieces: list[str] = []
        try:
            for step in generate(
                self.lm, ids, self.params, max_tokens=self.max_tokens, stop=self.stop, cache=self.cache
            ):
                pieces.append(step.piece)
                yield step
        finally:
            self.messages = [*asked, {"role": "assistant", "content": "".join(pieces)}]


def with_room(cache: KVCache | None, config: LlamaConfig, positions: int) -> KVCache:
    """The cache if it has room for so many positions, or a larger one with the same in it."""
    if cache is not None and cache.capacity >= positions:
        return cache
    capacity = FIRST_CAPACITY
    while capacity < positions:
        capacity *= 2
    larger = KVCache.empty(config, min(capacity, config.max_position_embeddings))
    if cache is not None:
        larger.keys[:, :, : cache.length] = cache.keys[:, :, : cache.length]
        larger.values[:, :, : cache.length] = cache.values[:, :, : cache.length]
        larger.advance(cache.ids)
    return larger


def talk(console: Terminal, conversation: Conversation, read: Callable[[str], str]) -> None:
    """Read lines and answer them until /quit or the end of the input.

    Ctrl-C stops an answer that is being given; while the program waits for a line, it ends the program.
    """
    edit_lines()
    prompt = "you: " if sys.stdin.isatty() else ""
    while True:
        try:
            line = read(prompt).strip()
        except EOFError:
            console.stream("\n" if prompt else "")  # Ctrl-D leaves the cursor behind the prompt
            return
        if line == "/quit":
            return
        if line == "/new":
            conversation.begin()
            console.note("a new conversation")
        elif line:
            reply(console, conversation, line)


def reply(console: Terminal, conversation: Conversation, line: str) -> None:
    """Print the answer to one line, piece by piece."""
    try:
        with closing(conversation.answer(line)) as steps:
            for step in steps:
                console.stream(step.piece)
                if step.stop_reason in ("length", "context"):
                    console.note(f"\n(cut off: {REASONS[step.stop_reason]})", end="")
    except KeyboardInterrupt:
        console.note("\n(stopped)")
    except UnencodableError as error:
        console.note(f"The model has no tokens for that: {error}")
    except ValueError as error:
        console.note(str(error))
    else:
        console.stream("\n")


def edit_lines() -> None:
    """Let the arrow keys work in the line that is being typed, where the system can do that."""
    try:
        import readline  # noqa: F401  # importing it is all that `input` needs; Windows has none and needs none
    except ImportError:
        return
