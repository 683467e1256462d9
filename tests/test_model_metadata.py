"""Metadata become the config and tokenizer that they describe, or an error that names the key."""

from dataclasses import replace

import numpy as np
import pytest
from gguf_models import CONFIG, SPECIAL_TOKENS, TOKENS, metadata_of

from llm_internals.gguf import GGUFError, GGUFFile
from llm_internals.model_metadata import END_TOKENS, read_config, read_eos_ids, read_tokenizer

TOKENIZER = "tokenizer.ggml."


def file_with(tmp_path, changes: dict) -> GGUFFile:
    """A file without tensors whose metadata are those of the tiny model, with some changed or, if None, left out."""
    metadata = {key: value for key, value in (metadata_of(CONFIG) | changes).items() if value is not None}
    offsets = {key: 24 + 100 * place for place, key in enumerate(metadata)}
    return GGUFFile(version=3, metadata=metadata, tensors={}, path=tmp_path / "tiny.gguf", key_offsets=offsets)


def test_the_metadata_become_the_config_that_they_were_made_of(tmp_path):
    assert read_config(file_with(tmp_path, {})) == replace(
        CONFIG, tie_word_embeddings=True
    )  # there is no output matrix


def test_optional_keys_have_the_defaults_of_llama_cpp(tmp_path):
    sizes = ("vocab_size", "attention.head_count_kv", "attention.key_length", "attention.value_length")
    absent = {"llama." + key: None for key in (*sizes, "rope.dimension_count", "rope.freq_base")}
    config = read_config(file_with(tmp_path, absent))
    assert (config.num_key_value_heads, config.head_dim, config.rope_theta) == (4, 16, 10_000.0)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("general.architecture", None, "'general.architecture' is missing"),
        ("general.architecture", "qwen2", "must be 'llama', the one that is implemented, but is 'qwen2'"),
        (
            "tokenizer.ggml.model",
            "llama",
            "tokenizer.ggml.model must be 'gpt2', the one that is implemented, but is 'llama'",
        ),
        ("tokenizer.ggml.model", 3, "must be of type str, but is int"),
        ("tokenizer.ggml.tokens", None, "'tokenizer.ggml.tokens' is missing"),
        ("tokenizer.ggml.tokens", np.arange(4), "must be of type list, but is ndarray"),
        ("llama.block_count", None, "'llama.block_count' is missing"),
        ("llama.block_count", 2.0, "must be of type int, but is float"),
        ("llama.block_count", True, "must be of type int, but is bool"),
        ("llama.block_count", 0, "num_hidden_layers must be an integer of at least 1, but is 0"),
        ("llama.attention.head_count", None, "'llama.attention.head_count' is missing"),
        ("llama.attention.head_count", 0, "num_attention_heads must be an integer of at least 1, but is 0"),
        ("llama.attention.head_count", np.array([4, 4]), "must be of type int, but is ndarray"),
        ("llama.attention.head_count", 5, "num_attention_heads (5) must be a multiple of num_key_value_heads (2)"),
        ("llama.attention.head_count_kv", 3, "num_attention_heads (4) must be a multiple of num_key_value_heads (3)"),
        ("llama.attention.head_count_kv", 0, "num_key_value_heads must be an integer of at least 1, but is 0"),
        ("llama.attention.key_length", 0, "llama.attention.value_length must equal the width of a head (0), but is 24"),
        (
            "llama.attention.value_length",
            32,
            "llama.attention.value_length must equal the width of a head (24), but is 32",
        ),
        ("llama.rope.dimension_count", 12, "llama.rope.dimension_count must equal the width of a head (24), but is 12"),
        ("llama.vocab_size", 7, "llama.vocab_size must be the number of tokens"),
        ("llama.context_length", 0, "max_position_embeddings must be an integer of at least 1, but is 0"),
        ("llama.context_length", 2**32 - 1, "llama.context_length must be at most 16777216"),
        ("llama.attention.layer_norm_rms_epsilon", -1.0, "rms_norm_eps must be a finite number above 0, but is -1.0"),
        ("llama.rope.freq_base", 0.0, "rope_theta must be a finite number above 0, but is 0.0"),
        ("llama.rope.freq_base", -1.0, "rope_theta must be a finite number above 0, but is -1.0"),
        ("llama.rope.freq_base", float("nan"), "rope_theta must be a finite number above 0, but is nan"),
        ("llama.rope.freq_base", float("inf"), "rope_theta must be a finite number above 0, but is inf"),
        ("llama.rope.scaling.type", "linear", "llama.rope.scaling.type is implemented only as 'none', but is 'linear'"),
        ("llama.rope.scaling.factor", 4.0, "llama.rope.scaling.factor is implemented only as 1.0, but is '4.0'"),
        ("llama.rope.scale_linear", 2.0, "llama.rope.scale_linear is implemented only as 1.0"),
        (
            "llama.rope.scaling.yarn_beta_fast",
            32.0,
            "yarn_beta_fast changes the computation in a way that isn't implemented",
        ),
        ("llama.expert_count", 8, "llama.expert_count is implemented only as 0, but is '8'"),
        (
            "llama.attention.sliding_window",
            128,
            "sliding_window changes the computation in a way that isn't implemented",
        ),
        ("llama.logit_scale", np.ones(9), "llama.logit_scale changes the computation in a way that isn't implemented"),
    ],
)
def test_a_key_of_the_model_that_cannot_be_used_is_named(tmp_path, key, value, message):
    file = file_with(tmp_path, {key: value})
    with pytest.raises(GGUFError) as caught:
        read_config(file)
    assert message in str(caught.value)


@pytest.mark.parametrize(("heads", "width"), [(0, 64), (5, 64), (4, 0)])
def test_without_a_key_length_the_heads_must_share_the_width_evenly(tmp_path, heads, width):
    changes = {"llama.attention.head_count": heads, "llama.embedding_length": width, "llama.attention.key_length": None}
    with pytest.raises(GGUFError):
        read_config(file_with(tmp_path, {**changes, "llama.attention.value_length": None}))


@pytest.mark.parametrize(
    ("key", "value"),
    [("llama.rope.scaling.type", "none"), ("llama.rope.scaling.factor", 1.0), ("llama.expert_count", 0)],
)
def test_a_key_that_asks_for_the_plain_computation_is_accepted(tmp_path, key, value):
    assert read_config(file_with(tmp_path, {key: value})).head_dim == 24


def test_the_error_says_at_which_byte_the_key_stands(tmp_path):
    file = file_with(tmp_path, {"llama.rope.dimension_count": 12})
    with pytest.raises(GGUFError) as caught:
        read_config(file)
    assert caught.value.offset == file.key_offsets["llama.rope.dimension_count"]


def test_the_metadata_become_a_tokenizer_with_the_special_tokens(tmp_path):
    tokenizer = read_tokenizer(file_with(tmp_path, {}))
    assert tokenizer.vocab_size == len(TOKENS)
    assert dict(tokenizer.special_tokens) == {name: id for id, name in enumerate(SPECIAL_TOKENS)}
    assert tokenizer.decode(tokenizer.encode("the thing\x04 in it")) == "the thing\x04 in it"
    assert [TOKENS[id] for id in tokenizer.encode("the the")] == ["the", "Ġthe"]


@pytest.mark.parametrize("token_type", [2, 3, 4, 5])
def test_tokens_of_every_type_but_the_normal_one_come_from_no_text(tmp_path, token_type):
    types = np.array([token_type] * 3 + [1] * (len(TOKENS) - 3), dtype=np.int32)
    tokenizer = read_tokenizer(file_with(tmp_path, {"tokenizer.ggml.token_type": types}))
    assert not set(tokenizer.encode("<|im_end|>")) & {0, 1, 2}
    assert tokenizer.encode("<|im_end|>", allow_special=True) == [2]


def types_with(token_type: int) -> np.ndarray:
    """Types of the tiny model's tokens, the last of them changed."""
    return np.array([3, 3, 3, *[1] * (len(TOKENS) - 4), token_type], dtype=np.int32)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("token_type", None, "'tokenizer.ggml.token_type' is missing"),
        ("token_type", np.ones(5, dtype=np.int32), f"an integer for each of {len(TOKENS)} tokens, but has 5 entries"),
        ("token_type", np.ones(len(TOKENS)), "tokenizer.ggml.token_type must hold an integer for each"),
        (
            "token_type",
            types_with(6),
            "tokenizer.ggml.token_type must be 1 to 5 in a byte-level vocabulary, but one is 6",
        ),
        (
            "token_type",
            types_with(0),
            "tokenizer.ggml.token_type must be 1 to 5 in a byte-level vocabulary, but one is 0",
        ),
        ("token_type", types_with(-1), "but one is -1"),
        ("tokens", [[1], [2]], "tokenizer.ggml.tokens must be an array of strings"),
        ("tokens", [*TOKENS[:-1], TOKENS[5]], "the metadata describe no tokenizer"),
        ("tokens", [*TOKENS[:-1], "a b"], "the metadata describe no tokenizer"),
        ("merges", None, "'tokenizer.ggml.merges' is missing"),
        ("merges", ["t h", "q q"], "the metadata describe no tokenizer"),
        ("merges", ["th"], "the metadata describe no tokenizer"),
        ("merges", ["t h e"], "the metadata describe no tokenizer"),
        ("pre", None, "'tokenizer.ggml.pre' is missing"),
        ("pre", "", "the metadata describe no tokenizer"),
        ("pre", "default", "'default'"),
        (
            "eos_token_id",
            len(TOKENS),
            f"tokenizer.ggml.eos_token_id must be in [0, {len(TOKENS)}), but is {len(TOKENS)}",
        ),
        ("bos_token_id", -1, f"tokenizer.ggml.bos_token_id must be in [0, {len(TOKENS)}), but is -1"),
        ("padding_token_id", 2**32 - 1, "tokenizer.ggml.padding_token_id must be in [0"),
        ("unknown_token_id", "0", "tokenizer.ggml.unknown_token_id must be in [0"),
        ("eot_token_id", True, "tokenizer.ggml.eot_token_id must be in [0"),
    ],
)
def test_a_key_of_the_tokenizer_that_cannot_be_used_is_named(tmp_path, key, value, message):
    file = file_with(tmp_path, {TOKENIZER + key: value})
    with pytest.raises(GGUFError) as caught:
        read_tokenizer(file)
    assert message in str(caught.value)


def test_an_empty_vocabulary_is_refused(tmp_path):
    empty = {"tokens": [], "merges": [], "token_type": np.array([], dtype=np.int32), "eos_token_id": None}
    file = file_with(tmp_path, {TOKENIZER + key: value for key, value in empty.items()} | {"llama.vocab_size": None})
    with pytest.raises(GGUFError, match="vocab_size must be an integer of at least 1, but is 0"):
        read_config(file)


def test_a_vocabulary_of_one_token_has_no_default_ids(tmp_path):
    one = {"tokens": ["a"], "merges": [], "token_type": np.array([1], dtype=np.int32), "eos_token_id": None}
    file = file_with(tmp_path, {TOKENIZER + key: value for key, value in one.items()})
    tokenizer = read_tokenizer(file)
    with pytest.raises(GGUFError, match=r"'tokenizer.ggml.eos_token_id' is missing"):
        read_eos_ids(file, tokenizer)


def test_a_response_ends_at_the_files_own_id_and_at_known_end_tokens(tmp_path):
    file = file_with(tmp_path, {"tokenizer.ggml.eos_token_id": 7, "tokenizer.ggml.eot_token_id": 9})
    assert read_eos_ids(file, read_tokenizer(file)) == {7, 9, 0, 2}
    assert {"<|endoftext|>", "<|im_end|>", "<|eot_id|>"} <= set(END_TOKENS)


def test_an_ordinary_token_that_is_spelt_like_an_end_token_ends_nothing(tmp_path):
    types = np.array([1, 3, 3, *[1] * (len(TOKENS) - 3)], dtype=np.int32)
    tokens = ["zz", *TOKENS[1:-1], "</s>"]
    file = file_with(
        tmp_path, {"tokenizer.ggml.token_type": types, "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": []}
    )
    assert read_eos_ids(file, read_tokenizer(file)) == {2}


def test_a_hostile_chat_template_is_data_that_nothing_runs(tmp_path):
    template = "{% for i in range(1000000000) %}{{ ''.__class__.__mro__[1].__subclasses__() }}{% endfor %}"
    file = file_with(tmp_path, {"tokenizer.chat_template": template})
    assert read_config(file).hidden_size == 64
    assert read_tokenizer(file).vocab_size == len(TOKENS)
