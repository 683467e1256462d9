"""A GGUF file becomes a model that computes what transformers does with its weights; a bad file becomes an error."""

import subprocess
import sys
import time
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import gguf as package
import numpy as np
import pytest
import torch
from gguf_models import CONFIG, MERGES, TOKENS, metadata_of, tensors_of, write_gguf
from hypothesis import given
from hypothesis import strategies as st
from reference import state_dict, transformers_config, transformers_model
from tiny_model import random_weights
from transformers import LlamaForCausalLM
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from llm_internals.checkpoint import (
    LanguageModel,
    check_tensors,
    half_split_order,
    load_checkpoint,
    read_float32_matrix,
)
from llm_internals.dequantize import KINDS
from llm_internals.gguf import GGUFError, read_gguf
from llm_internals.logits import lm_head
from llm_internals.model import forward
from llm_internals.weights_file import find_weights

LOGITS_TOLERANCE = 2e-5
"""Two orders of summing float32: the logits of the tiny model are about 1, the largest difference seen was 4e-6."""
PEAK_MEGABYTES = 1000
SECONDS_A_BAD_FILE = 1.0
FUZZED_FILES = 300


@pytest.fixture(scope="module")
def weights():
    """Random weights of the tiny config."""
    return random_weights(CONFIG)


@pytest.fixture
def tiny_file(tmp_path, weights):
    """A function: changed metadata and tensors (None leaves one out) -> the path of a file."""

    def write(metadata: dict | None = None, tensors: dict | None = None, kind: str = "F32") -> Path:
        changed = tensors_of(weights) | (tensors or {})
        kept = {name: tensor for name, tensor in changed.items() if tensor is not None}
        return write_gguf(tmp_path / "tiny.gguf", metadata_of(CONFIG) | (metadata or {}), kept, kind)

    return write


def quantised(values: torch.Tensor, kind: str) -> torch.Tensor:
    """A matrix [in, out] after being stored in blocks along its inputs."""
    block_type = package.GGMLQuantizationType[kind]
    stored = package.quants.quantize(np.ascontiguousarray(values.t().numpy()), block_type)
    return torch.from_numpy(package.quants.dequantize(stored, block_type)).t()


def matrices_through(weights, change):
    """The same weights, each matrix through a function."""
    layers = tuple(
        replace(layer, **{
            part: replace(matrices, **{field.name: change(getattr(matrices, field.name)) for field in fields(matrices)})
            for part, matrices in (("self_attn", layer.self_attn), ("mlp", layer.mlp))
        })
        for layer in weights.layers
    )  # fmt: skip
    return replace(weights, embed_tokens=change(weights.embed_tokens), layers=layers, lm_head=change(weights.lm_head))


def test_every_weight_is_loaded_as_it_was_before_it_was_written(tiny_file, weights):
    lm = load_checkpoint(tiny_file())
    ours, original = state_dict(lm.weights), state_dict(weights)
    assert ours.keys() == original.keys()
    for name, tensor in original.items():
        assert torch.equal(ours[name], tensor), name
    assert lm.config == CONFIG
    assert lm.weights.config is lm.config
    assert lm.eos_ids == frozenset({0, 2})
    assert lm.tokenizer.vocab_size == len(TOKENS)


def test_matrices_are_in_out_and_lie_in_memory_along_their_longer_axis(tiny_file):
    lm = load_checkpoint(tiny_file())
    assert lm.weights.embed_tokens.shape == (64, len(TOKENS))
    assert lm.weights.layers[0].self_attn.k_proj.shape == (64, 48)
    assert lm.weights.layers[0].mlp.down_proj.shape == (160, 64)
    for name, tensor in state_dict(lm.weights).items():
        assert tensor.dtype == torch.float32, name
        along_in = tensor.shape[0] < tensor.shape[-1]  # the dict has them as [out, in]
        assert (tensor if along_in else tensor.t()).is_contiguous(), name


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_transformers_with_the_same_weights(tiny_file, weights, kind):
    lm = load_checkpoint(tiny_file(kind=kind))
    model = transformers_model(matrices_through(weights, lambda matrix: quantised(matrix, kind)))
    ids = torch.tensor(lm.tokenizer.encode("the thing in the inn: 3 + 4?"))
    ours = lm_head(forward(ids, lm.weights), lm.weights)
    theirs = model(ids[None]).logits[0]
    assert theirs.std() > 0.5  # there is something to compare
    torch.testing.assert_close(ours, theirs, rtol=0, atol=LOGITS_TOLERANCE)


def test_the_output_matrix_is_the_embedding_only_if_the_file_has_none(tiny_file, tmp_path):
    assert load_checkpoint(tiny_file()).weights.lm_head.shape == (64, len(TOKENS))
    assert not load_checkpoint(tiny_file()).config.tie_word_embeddings
    tied = load_checkpoint(tiny_file(tensors={"output.weight": None}))
    assert tied.config.tie_word_embeddings
    assert tied.weights.lm_head is tied.weights.embed_tokens


@given(heads=st.integers(1, 5), half=st.integers(1, 8))
def test_the_row_order_undoes_the_order_of_the_converter(heads, half):
    """llama.cpp's `permute`, applied to row numbers, and then our order, give the row numbers back."""
    rows = np.arange(heads * 2 * half)
    converted = rows.reshape(heads, 2, half).swapaxes(1, 2).ravel()
    assert np.array_equal(converted[half_split_order(heads, 2 * half)], rows)


def test_a_matrix_of_more_rows_than_are_read_at_once_has_them_all_in_order(tmp_path):
    matrix = np.arange(1000 * 32, dtype=np.float32).reshape(1000, 32)
    tensor = read_gguf(write_gguf(tmp_path / "one.gguf", {}, {"m": matrix})).tensors["m"]
    order = np.random.default_rng(0).permutation(1000)
    assert np.array_equal(read_float32_matrix(tensor).numpy(), matrix.T)
    assert np.array_equal(read_float32_matrix(tensor, order).numpy(), matrix[order].T)


def test_a_language_model_is_frozen_and_says_in_a_line_what_it_is(tiny_file):
    lm = load_checkpoint(str(tiny_file()))
    assert isinstance(lm, LanguageModel)
    assert repr(lm) == f"LanguageModel(Weights(2 layers, 64 wide, {len(TOKENS)} tokens), eos_ids=[0, 2])"
    with pytest.raises(FrozenInstanceError):
        lm.eos_ids = frozenset()


@pytest.mark.parametrize("form", ["int8", "packed4", ""])
def test_an_unknown_form_of_weights_is_refused_with_those_that_there_are(tiny_file, form):
    with pytest.raises(ValueError, match=r"weights must be one of 'float32'.*, but is '"):
        load_checkpoint(tiny_file(), weights=form)


NAN_MATRIX = np.full((64, 96), np.nan, dtype=np.float32)
BAD_FILES = {
    "another architecture": ({"general.architecture": "gemma"}, {}, "must be 'llama'"),
    "another tokenizer": ({"tokenizer.ggml.model": "llama"}, {}, "must be 'gpt2'"),
    "unknown split": ({"tokenizer.ggml.pre": "default"}, {}, "'default'"),
    "tokens and types differ in length": ({"tokenizer.ggml.token_type": [1, 3]}, {}, "must hold an integer for each"),
    "merge of no token": ({"tokenizer.ggml.merges": [*MERGES, "q q"]}, {}, "describe no tokenizer"),
    "special id too large": ({"tokenizer.ggml.bos_token_id": len(TOKENS)}, {}, "must be in [0"),
    "special id negative": ({"tokenizer.ggml.eos_token_id": -1}, {}, "must be in [0"),
    "no end id": ({"tokenizer.ggml.eos_token_id": None}, {}, "is missing"),
    "byte token": ({"tokenizer.ggml.token_type": [6] * len(TOKENS)}, {}, "must be 1 to 5"),
    "duplicate token": ({"tokenizer.ggml.tokens": [*TOKENS[:-1], "the"]}, {}, "describe no tokenizer"),
    "no heads": ({"llama.attention.head_count": 0}, {}, "num_attention_heads"),
    "heads not shared evenly": ({"llama.attention.head_count_kv": 3}, {}, "must be a multiple"),
    "scaled rotary frequencies": ({"llama.rope.scaling.type": "yarn"}, {}, "is implemented only as 'none'"),
    "frequency base NaN": ({"llama.rope.freq_base": float("nan")}, {}, "must be a finite number above 0"),
    "context too long": ({"llama.context_length": 2**32 - 1}, {}, "at most 16777216"),
    "more layers than tensors": ({"llama.block_count": 2**32 - 1}, {}, "'blk.2.attn_norm.weight' is missing"),
    "fewer layers than tensors": ({"llama.block_count": 1}, {}, "'blk.1.attn_norm.weight' isn't part of a plain Llama"),
    "missing tensor": ({}, {"blk.1.ffn_up.weight": None}, "tensor 'blk.1.ffn_up.weight' is missing"),
    "no embedding": ({}, {"token_embd.weight": None}, "tensor 'token_embd.weight' is missing"),
    "wrong shape": (
        {},
        {"output_norm.weight": np.ones(32, dtype=np.float32)},
        "must have the shape (64,), but has (32,)",
    ),
    "transposed matrix": ({}, {"blk.0.ffn_up.weight": np.ones((64, 160), np.float32)}, "(160, 64), but has (64, 160)"),
    "vocabulary of another length": ({}, {"token_embd.weight": np.ones((9, 64), np.float32)}, "but has (9, 64)"),
    "bias": (
        {},
        {"blk.0.attn_q.bias": np.ones(96, dtype=np.float32)},
        "'blk.0.attn_q.bias' isn't part of a plain Llama",
    ),
    "frequency factors": ({}, {"rope_freqs.weight": np.ones(12, dtype=np.float32)}, "'rope_freqs.weight' isn't part"),
    "NaN in a matrix": ({}, {"blk.1.attn_output.weight": NAN_MATRIX}, "'blk.1.attn_output.weight' holds NaN"),
    "infinity in a norm": (
        {},
        {"output_norm.weight": np.full(64, np.inf, np.float32)},
        "'output_norm.weight' holds NaN",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_is_no_plain_llama_model_raises_gguf_error_at_once(tiny_file, case):
    metadata, tensors, message = BAD_FILES[case]
    path = tiny_file(metadata, tensors)
    start = time.perf_counter()
    with pytest.raises(GGUFError) as caught:
        load_checkpoint(path)
    assert message in str(caught.value)
    assert time.perf_counter() - start < SECONDS_A_BAD_FILE


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0"])
@pytest.mark.parametrize("scale", ["007c", "007e", "00fc"])
def test_a_scale_that_is_nan_or_infinite_raises_gguf_error(tiny_file, kind, scale):
    path = tiny_file(kind=kind)
    tensor = read_gguf(path).tensors["blk.1.ffn_down.weight"]
    data = bytearray(path.read_bytes())
    data[tensor.offset : tensor.offset + 2] = bytes.fromhex(scale)
    path.write_bytes(data)
    with pytest.raises(GGUFError, match=r"'blk.1.ffn_down.weight' holds NaN or infinity") as caught:
        load_checkpoint(path)
    assert caught.value.offset == tensor.offset


def test_a_model_with_random_bytes_in_its_header_loads_or_raises_gguf_error(tiny_file):
    """All sizes stand in the first 900 bytes, the tensor descriptions in the last 1500 before the data."""
    path = tiny_file(kind="Q4_0")
    whole, random = path.read_bytes(), np.random.default_rng(0)
    data_start = min(tensor.offset for tensor in read_gguf(path).tensors.values())
    header = [*range(4, 900), *range(data_start - 1500, data_start)]
    for _ in range(FUZZED_FILES):
        fuzzed = bytearray(whole)
        for position in random.choice(header, random.integers(1, 4)):
            fuzzed[position] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.integers(256)])
        path.write_bytes(fuzzed)
        try:
            load_checkpoint(path)
        except GGUFError:
            continue


def test_a_missing_file_is_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "missing.gguf")


def test_smollm2_is_loaded_with_its_config_and_both_end_tokens(lm):
    assert (lm.config.vocab_size, lm.config.hidden_size, lm.config.num_hidden_layers) == (49_152, 576, 30)
    assert (lm.config.num_attention_heads, lm.config.num_key_value_heads, lm.config.head_dim) == (9, 3, 64)
    assert lm.config.tie_word_embeddings
    assert lm.weights.lm_head is lm.weights.embed_tokens
    assert lm.eos_ids == frozenset({0, 2})
    check_tensors(read_gguf(find_weights()), lm.config)


def test_smollm2_has_the_weights_of_transformers_and_is_loaded_in_less_time():
    """Bit-equal, and sooner than transformers has turned the file into tensors, before it makes a model of them."""
    path = find_weights()
    start = time.perf_counter()
    lm = load_checkpoint()
    our_seconds = time.perf_counter() - start
    with torch.device("meta"):
        model = LlamaForCausalLM(transformers_config(lm.config))
    start = time.perf_counter()
    theirs = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)["tensors"]
    their_seconds = time.perf_counter() - start
    ours = state_dict(lm.weights)
    assert set(theirs) == set(ours) - {"lm_head.weight"}
    for name, tensor in theirs.items():
        assert torch.equal(ours[name], tensor), name
    assert our_seconds < their_seconds


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own record of the peak is read from /proc")
def test_loading_smollm2_peaks_under_a_thousand_megabytes_with_python_and_torch():
    program = (
        "import llm_internals; llm_internals.load_checkpoint(); print(open('/proc/self/status', 'rb').read().decode())"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    peak_kib = next(int(line.split()[1]) for line in result.stdout.splitlines() if line.startswith("VmHWM"))
    assert peak_kib * 1024 < PEAK_MEGABYTES * 10**6
