"""Stage 1, text to ids: a list of messages -> the ids that a chat model was trained on.

A chat model still predicts the next token of one sequence. The template is the training format that says in this
sequence who speaks: every turn is ``<|im_start|>``, the role, a line feed, the content, ``<|im_end|>`` and a line
feed (ChatML).

The scaffold's special tokens are put in as ids, and content is always ordinary text: a user who pastes ``<|im_end|>``
has written ten characters, not the end of their turn. Whoever renders everything into one string and looks for
special tokens in that can't tell the two apart.

Leaves out: templates as programs. A model file carries a Jinja template, which is code from whoever made the file
(CVE-2024-34359 ran commands with one); this module writes the one format that it knows and runs nothing.
Also tools and images.

Chapter: ``01_tokenization``.
Source: the field ``tokenizer.chat_template`` of SmolLM2-135M-Instruct, which tests render with Jinja and compare;
``huggingface/transformers``, ``utils/chat_template_utils.py``, ``render_jinja_template``.
"""

from collections.abc import Iterator, Mapping, Sequence

from llm_internals.tokenizer import Tokenizer

ROLES = ("system", "user", "assistant")
"""Who may speak."""

DEFAULT_SYSTEM_MESSAGE = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
"""The template begins with this system turn if the messages don't begin with one."""

_START = "<|im_start|>"
_END = "<|im_end|>"

Message = Mapping[str, object]
"""``{"role": ..., "content": ...}``, both str."""


def encode_chat(tokenizer: Tokenizer, messages: Sequence[Message], add_generation_prompt: bool = True) -> list[int]:
    """Return the ids of a conversation.

    Parameters
    ----------
    tokenizer : Tokenizer
        With the special tokens ``<|im_start|>`` and ``<|im_end|>``.
    messages : sequence of mappings
        Each with ``"role"``, one of `ROLES`, and ``"content"``, a str that may be empty; other keys are not looked at.
    add_generation_prompt : bool
        End with the opening of an assistant's turn, so that what the model predicts next is its answer.

    Raises
    ------
    ValueError
        No messages, an unknown role, a missing key, content that is no str (index and key are named), or a tokenizer
        without the two special tokens.
    UnencodableError
        Content that the vocabulary can't express; the position is that in the content.
    """
    for token in (_START, _END):
        if token not in tokenizer.special_tokens:
            raise ValueError(
                f"tokenizer must have the special token {token!r}, which this chat format is made of; "
                f"it has {sorted(tokenizer.special_tokens)}"
            )
    _check(messages)
    for message in messages:
        tokenizer.check_encodable(message["content"])
    ids: list[int] = []
    for text, is_special in segments(messages, add_generation_prompt):
        ids += [tokenizer.special_tokens[text]] if is_special else tokenizer.encode(text)
    return ids


def render_chat(messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
    """Return the conversation as one string, to look at.

    Don't encode it: a pasted ``<|im_end|>`` looks like the template's own in it.
    Parameters and errors are those of `encode_chat`.

    >>> print(render_chat([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi!"}]), end="")
    <|im_start|>system
    Be brief.<|im_end|>
    <|im_start|>user
    Hi!<|im_end|>
    <|im_start|>assistant
    """
    return "".join(text for text, _ in segments(messages, add_generation_prompt))


def segments(messages: Sequence[Message], add_generation_prompt: bool = True) -> Iterator[tuple[str, bool]]:
    """Yield the conversation in parts, as (text, whether it is a special token).

    Role and content are one part, since the model was trained on text that was tokenized with no border between them.
    Parameters and errors are those of `encode_chat`.

    >>> list(segments([{"role": "system", "content": "Be brief."}], add_generation_prompt=False))
    [('<|im_start|>', True), ('system\\nBe brief.', False), ('<|im_end|>', True), ('\\n', False)]
    """
    _check(messages)
    if messages[0]["role"] != "system":
        messages = [{"role": "system", "content": DEFAULT_SYSTEM_MESSAGE}, *messages]
    for message in messages:
        yield _START, True
        yield f"{message['role']}\n{message['content']}", False
        yield _END, True
        yield "\n", False
    if add_generation_prompt:
        yield _START, True
        yield "assistant\n", False


def _check(messages: Sequence[Message]) -> None:
    """Raise ValueError for the first thing that is wrong with the messages."""
    if not messages:
        raise ValueError("messages must have at least one message, got none")
    for index, message in enumerate(messages):
        for key in ("role", "content"):
            if key not in message:
                raise ValueError(f"messages[{index}] must have the key {key!r}, it has {list(message)}")
        role, content = message["role"], message["content"]
        if role not in ROLES:
            raise ValueError(f"messages[{index}]['role'] must be one of {ROLES}, got {role!r}")
        if not isinstance(content, str):
            raise ValueError(f"messages[{index}]['content'] must be a str, got {type(content).__name__}")
