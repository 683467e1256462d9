"""The weights file: the metadata of a GGUF file -> config, tokenizer, end ids.

Nothing is guessed. A key that is missing, of another type or out of range is refused by name, and so is every key that
would change the computation and that no stage implements: a file that loads is computed right.

Leaves out the chat template, a program in the file that nothing here runs (`chat` writes the format itself), and
architectures other than ``llama``.

Chapter: ``11_four_bits``.
Source: ggml ``docs/gguf.md``, "Standardized key-value pairs"; llama.cpp ``src/llama-model.cpp``, ``load_hparams``, and
``src/llama-vocab.cpp``, ``llama_vocab::impl::load``.
"""

from typing import Any

import numpy as np

from llm_internals.config import LlamaConfig
from llm_internals.gguf import GGUFFile
from llm_internals.tokenizer import Tokenizer

LONGEST_CONTEXT = 2**24
"""Positions are multiplied by frequencies in float32, which has every whole number only up to here."""

SHAPE_KEYS = {
    "llama.block_count",
    "llama.context_length",
    "llama.embedding_length",
    "llama.feed_forward_length",
    "llama.vocab_size",
    "llama.attention.head_count",
    "llama.attention.head_count_kv",
    "llama.attention.key_length",
    "llama.attention.value_length",
    "llama.attention.layer_norm_rms_epsilon",
    "llama.rope.dimension_count",
    "llama.rope.freq_base",
}
NEUTRAL_KEYS = {
    "llama.rope.scaling.type": "none",
    "llama.rope.scaling.factor": 1.0,
    "llama.rope.scaling.attn_factor": 1.0,
    "llama.rope.scale_linear": 1.0,
    "llama.expert_count": 0,
    "llama.expert_used_count": 0,
    "llama.tensor_data_layout": "Meta AI original pth",
}
"""Keys that are accepted with one value, the one under which the computation is the plain one."""

NORMAL_TOKEN, BYTE_TOKEN = 1, 6
"""Token types of ggml: text, and a byte of a SentencePiece vocabulary. All others mark tokens that no text becomes."""

END_TOKENS = ("<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "</s>")
"""Special tokens that end a text or a turn, by the names that model families give them."""

_REQUIRED = object()


def metadata_value(file: GGUFFile, key: str, kind: type, default: Any = _REQUIRED) -> Any:
    """The value of a key, which must be of one type; without a default the key must be there.

    Raises
    ------
    GGUFError
        If it is missing or of another type.
    """
    value = file.metadata.get(key, default)
    if value is _REQUIRED:
        raise file.error(f"metadata key {key!r} is missing")
    if type(value) is not kind:
        raise file.error(f"{key} must be of type {kind.__name__}, but is {type(value).__name__}", key)
    return value


def read_config(file: GGUFFile) -> LlamaConfig:
    """The keys under ``llama.*`` as a config.

    Raises
    ------
    GGUFError
        If the architecture isn't ``llama``, a key is unknown, missing or out of range, or the sizes contradict each
        other.
    """
    check_architecture(file)
    check_llama_keys(file)
    heads = metadata_value(file, "llama.attention.head_count", int)
    fields = {
        "vocab_size": len(metadata_value(file, "tokenizer.ggml.tokens", list)),
        "hidden_size": metadata_value(file, "llama.embedding_length", int),
        "intermediate_size": metadata_value(file, "llama.feed_forward_length", int),
        "num_hidden_layers": metadata_value(file, "llama.block_count", int),
        "num_attention_heads": heads,
        "num_key_value_heads": metadata_value(file, "llama.attention.head_count_kv", int, default=heads),
        "head_dim": read_head_dim(file),
        "rms_norm_eps": metadata_value(file, "llama.attention.layer_norm_rms_epsilon", float),
        "rope_theta": metadata_value(file, "llama.rope.freq_base", float, default=10_000.0),
        "max_position_embeddings": metadata_value(file, "llama.context_length", int),
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
    if fields["max_position_embeddings"] > LONGEST_CONTEXT:
        raise file.error(f"llama.context_length must be at most {LONGEST_CONTEXT}", "llama.context_length")
    if metadata_value(file, "llama.vocab_size", int, default=fields["vocab_size"]) != fields["vocab_size"]:
        raise file.error(f"llama.vocab_size must be the number of tokens, {fields['vocab_size']}", "llama.vocab_size")
    try:
        return LlamaConfig(**fields)
    except ValueError as error:
        raise file.error(f"the metadata describe no model: {error}") from error


def check_architecture(file: GGUFFile) -> None:
    """Refuse anything but a whole Llama model with a byte-level BPE tokenizer."""
    for key, supported in (("general.architecture", "llama"), ("tokenizer.ggml.model", "gpt2")):
        value = metadata_value(file, key, str)
        if value != supported:
            raise file.error(f"{key} must be {supported!r}, the one that is implemented, but is {value!r}", key)


def check_llama_keys(file: GGUFFile) -> None:
    """Refuse every key under ``llama.*`` that asks for something else than the plain computation."""
    for key, value in file.metadata.items():
        if not key.startswith("llama.") or key in SHAPE_KEYS:
            continue
        if key not in NEUTRAL_KEYS:
            raise file.error(f"{key} changes the computation in a way that isn't implemented: {str(value)[:80]}", key)
        if type(value) is not type(NEUTRAL_KEYS[key]) or value != NEUTRAL_KEYS[key]:
            raise file.error(f"{key} is implemented only as {NEUTRAL_KEYS[key]!r}, but is {str(value)[:80]!r}", key)


def read_head_dim(file: GGUFFile) -> int:
    """Width of a head: ``key_length``, or the width of the model shared out evenly. All of it must be rotated."""
    width = metadata_value(file, "llama.embedding_length", int)
    heads = metadata_value(file, "llama.attention.head_count", int)
    if "llama.attention.key_length" not in file.metadata and (heads < 1 or width % heads):
        message = f"llama.attention.head_count must divide llama.embedding_length ({width}), but is {heads}"
        raise file.error(message, "llama.attention.head_count")
    head_dim = metadata_value(file, "llama.attention.key_length", int, default=width // max(heads, 1))
    for key in ("llama.attention.value_length", "llama.rope.dimension_count"):
        if metadata_value(file, key, int, default=head_dim) != head_dim:
            raise file.error(f"{key} must equal the width of a head ({head_dim}), but is {file.metadata[key]}", key)
    return head_dim


def read_tokenizer(file: GGUFFile) -> Tokenizer:
    """The keys under ``tokenizer.ggml.*`` as a tokenizer.

    Every token that isn't of the normal type is special: no text becomes it unless asked for.

    Raises
    ------
    GGUFError
        If lists contradict each other, an id is out of range, or the split (``tokenizer.ggml.pre``) is unknown.
    """
    tokens = read_texts(file, "tokenizer.ggml.tokens")
    check_token_ids(file, len(tokens))
    try:
        return Tokenizer.from_vocabulary(
            tokens,
            read_texts(file, "tokenizer.ggml.merges"),
            read_special_ids(file, len(tokens)),
            metadata_value(file, "tokenizer.ggml.pre", str),
        )
    except ValueError as error:
        raise file.error(f"the metadata describe no tokenizer: {error}") from error


def read_texts(file: GGUFFile, key: str) -> list[str]:
    """A list of strings."""
    texts = metadata_value(file, key, list)
    if not all(isinstance(text, str) for text in texts):
        raise file.error(f"{key} must be an array of strings, but is an array of arrays", key)
    return texts


def read_special_ids(file: GGUFFile, vocab_size: int) -> set[int]:
    """The ids of all tokens that aren't of the normal type."""
    key = "tokenizer.ggml.token_type"
    types = metadata_value(file, key, np.ndarray)
    if types.dtype.kind not in "iu" or len(types) != vocab_size:
        raise file.error(
            f"{key} must hold an integer for each of {vocab_size} tokens, but has {len(types)} entries", key
        )
    strange = types[(types < NORMAL_TOKEN) | (types >= BYTE_TOKEN)]
    if len(strange):
        raise file.error(f"{key} must be 1 to 5 in a byte-level vocabulary, but one is {strange[0]}", key)
    return set(np.flatnonzero(types != NORMAL_TOKEN).tolist())


def check_token_ids(file: GGUFFile, vocab_size: int) -> None:
    """Every id that the metadata name is in the vocabulary."""
    for key, value in file.metadata.items():
        names_a_token = key.startswith("tokenizer.ggml.") and key.endswith("_token_id")
        if names_a_token and (type(value) is not int or not 0 <= value < vocab_size):
            raise file.error(f"{key} must be in [0, {vocab_size}), but is {str(value)[:80]}", key)


def read_eos_ids(file: GGUFFile, tokenizer: Tokenizer) -> frozenset[int]:
    """The ids that end a response: the file's own, and the special tokens known to end a text or a turn.

    One isn't enough: a model that was trained on turns and on texts ends with either, and one that is never stopped
    goes on with both parts of a conversation.
    """
    eos = metadata_value(file, "tokenizer.ggml.eos_token_id", int)
    ends = {metadata_value(file, f"tokenizer.ggml.{name}_token_id", int, default=eos) for name in ("eos", "eot", "eom")}
    ends |= {tokenizer.special_tokens[name] for name in END_TOKENS if name in tokenizer.special_tokens}
    return frozenset(ends)
