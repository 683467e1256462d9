"""The weights file: a GGUF file -> a language model, with weights in the form that the stages take.

Two things differ between the file and this package. A matrix lies there as [out, in] and here as [in, out]. And the
rows of the query and key matrices are reordered there, so that RoPE turns neighbours; here it turns the two halves of
a head, as in the Hugging Face checkpoint, so the order is undone.

Each tensor is read by itself, turned into float32 a few rows at a time, and dropped: the most that is held besides the
finished weights is one tensor as it lies in the file.

Leaves out what the metadata mean (`model_metadata`), and every tensor that a plain Llama model doesn't have: biases,
experts, scaled rotary frequencies are refused by name.

Chapter: ``11_four_bits``; the two orders of RoPE, ``02_embedding_and_rope``.
Source: llama.cpp ``convert_hf_to_gguf.py``, ``LlamaModel.permute``; the ``gguf`` package, ``constants.py``,
``MODEL_TENSORS``; transformers ``modeling_gguf_pytorch_utils.py``, ``LlamaTensorProcessor``.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from llm_internals.attention import AttentionWeights
from llm_internals.block import BlockWeights
from llm_internals.config import LlamaConfig
from llm_internals.dequantize import dequantize
from llm_internals.feed_forward import FeedForwardWeights
from llm_internals.gguf import GGUFError, GGUFFile, GGUFTensor, read_gguf
from llm_internals.huge_pages import ALIGNMENT, Allocator, allocator
from llm_internals.linear import Matrix
from llm_internals.model import Weights
from llm_internals.model_metadata import read_config, read_eos_ids, read_tokenizer
from llm_internals.packed import PACKERS, ROW_MULTIPLE, TokenMatrix, kernels_usable, pack
from llm_internals.tokenizer import Tokenizer

ROWS_AT_ONCE = 256
"""Rows that are dequantised together: few enough to stay in the processor's cache until they are copied."""

TOKEN_MATRIX = "token_embd.weight"
"""The tensor whose rows are looked up."""

RowOrder = Int[np.ndarray, " rows"]
MatrixReader = Callable[..., Matrix]


@dataclass(frozen=True, eq=False, repr=False)
class LanguageModel:
    """A model that is ready to run.

    Parameters
    ----------
    config : LlamaConfig
        The same object as ``weights.config``.
    weights : Weights
    tokenizer : Tokenizer
    eos_ids : frozenset of int
        The tokens that end a response.
    """

    config: LlamaConfig
    weights: Weights
    tokenizer: Tokenizer
    eos_ids: frozenset[int]

    def __repr__(self) -> str:
        return f"LanguageModel({self.weights!r}, eos_ids={sorted(self.eos_ids)})"


def load_checkpoint(path: str | os.PathLike[str] | None = None, *, weights: str = "float32") -> LanguageModel:
    """Read a model from a GGUF file.

    Parameters
    ----------
    path : str or path-like, optional
        Any GGUF file of architecture ``llama`` with a byte-level BPE tokenizer; None for SmolLM2-135M-Instruct, found
        or fetched by `weights_file.find_weights`.
    weights : str
        In what form the matrices are held, a key of `MATRIX_READERS`: "float32", or "packed" for the file's own 4 and
        8 bits (`packed`), which is smaller, faster, and rounds more. Norms are always float32.

    Warns
    -----
    UserWarning
        If ``weights`` is "packed" and this PyTorch can't multiply packed weights, so that they are held in float32; or
        if it can, but slowly.

    Raises
    ------
    ValueError
        If ``weights`` is unknown.
    FileNotFoundError
        If there is no file at ``path``, or none was found and none could be fetched (`WeightsNotFoundError`).
    GGUFError
        If the file is malformed, contradicts itself, or needs something that isn't implemented; it is named.
    """
    if weights not in MATRIX_READERS:
        raise ValueError(f"weights must be one of {', '.join(map(repr, MATRIX_READERS))}, but is {weights!r}")
    if weights == "packed" and not kernels_usable():
        weights = "float32"
    # Imported here, since Python warns if the package has imported what `python -m llm_internals.weights_file` runs.
    from llm_internals.weights_file import find_weights

    file = read_gguf(find_weights(path))
    config = read_config(file)
    check_tensors(file, config)
    tokenizer = read_tokenizer(file)
    eos_ids = read_eos_ids(file, tokenizer)
    return LanguageModel(config, read_weights(file, config, MATRIX_READERS[weights]), tokenizer, eos_ids)


def expected_tensors(config: LlamaConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of each tensor that the model needs, a layer after the other."""
    width, inner = config.hidden_size, config.intermediate_size
    q_width, kv_width = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
    yield TOKEN_MATRIX, (config.vocab_size, width)
    yield "output_norm.weight", (width,)
    if not config.tie_word_embeddings:
        yield "output.weight", (config.vocab_size, width)
    for layer in range(config.num_hidden_layers):
        yield f"blk.{layer}.attn_norm.weight", (width,)
        yield f"blk.{layer}.attn_q.weight", (q_width, width)
        yield f"blk.{layer}.attn_k.weight", (kv_width, width)
        yield f"blk.{layer}.attn_v.weight", (kv_width, width)
        yield f"blk.{layer}.attn_output.weight", (width, q_width)
        yield f"blk.{layer}.ffn_norm.weight", (width,)
        yield f"blk.{layer}.ffn_gate.weight", (inner, width)
        yield f"blk.{layer}.ffn_up.weight", (inner, width)
        yield f"blk.{layer}.ffn_down.weight", (width, inner)


def check_tensors(file: GGUFFile, config: LlamaConfig) -> None:
    """The file has every tensor that the config asks for, in its shape, and no other.

    Raises
    ------
    GGUFError
        For the first that is missing, has another shape, or isn't part of a plain Llama model.
    """
    unexpected = dict(file.tensors)
    for name, shape in expected_tensors(config):  # ends at the first that is missing, whatever the number of layers
        tensor = unexpected.pop(name, None)
        if tensor is None:
            raise file.error(f"tensor {name!r} is missing")
        if tensor.shape != shape:
            message = f"tensor {name!r} must have the shape {shape}, but has {tensor.shape}"
            raise GGUFError(message, file.path, tensor.offset)
    for tensor in unexpected.values():
        message = f"tensor {tensor.name!r} isn't part of a plain Llama model, and what it would do isn't implemented"
        raise GGUFError(message, file.path, tensor.offset)


def read_weights(file: GGUFFile, config: LlamaConfig, read_matrix: MatrixReader) -> Weights:
    """All tensors of the file, its matrices through ``read_matrix``, those in float32 next to each other in memory."""
    numbers = sum(math.prod(tensor.shape) + ALIGNMENT // 4 for tensor in file.tensors.values())
    read_matrix = partial(read_matrix, empty=allocator(numbers))  # room that no matrix asks for is never touched
    embed_tokens = read_matrix(file.tensors[TOKEN_MATRIX], None)
    output = file.tensors.get("output.weight")
    return Weights(
        config=config,
        embed_tokens=embed_tokens,
        layers=tuple(read_block(file, config, layer, read_matrix) for layer in range(config.num_hidden_layers)),
        norm=read_vector(file.tensors["output_norm.weight"]),
        lm_head=embed_tokens if output is None else read_matrix(output, None),
    )


def read_block(file: GGUFFile, config: LlamaConfig, layer: int, read_matrix: MatrixReader) -> BlockWeights:
    """The tensors of one layer, under the names of the Hugging Face checkpoint."""

    def vector(name: str) -> Tensor:
        return read_vector(file.tensors[f"blk.{layer}.{name}.weight"])

    def matrix(name: str, row_order: RowOrder | None = None) -> Matrix:
        return read_matrix(file.tensors[f"blk.{layer}.{name}.weight"], row_order)

    return BlockWeights(
        input_layernorm=vector("attn_norm"),
        self_attn=AttentionWeights(
            q_proj=matrix("attn_q", half_split_order(config.num_attention_heads, config.head_dim)),
            k_proj=matrix("attn_k", half_split_order(config.num_key_value_heads, config.head_dim)),
            v_proj=matrix("attn_v"),
            o_proj=matrix("attn_output"),
        ),
        post_attention_layernorm=vector("ffn_norm"),
        mlp=FeedForwardWeights(
            gate_proj=matrix("ffn_gate"),
            up_proj=matrix("ffn_up"),
            down_proj=matrix("ffn_down"),
        ),
    )


def half_split_order(heads: int, head_dim: int) -> RowOrder:
    """Which row of a GGUF query or key matrix is row 0, 1, 2, ... of the Hugging Face one.

    RoPE turns pairs of rows. GGUF puts the two of a pair side by side (0 1, 2 3, ...), Hugging Face half a head apart:
    first all that come first in their pairs, then all that come second. Keys have fewer heads than queries.

    Examples
    --------
    >>> half_split_order(heads=2, head_dim=6).tolist()
    [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]
    """
    rows = np.arange(heads * head_dim)
    return rows.reshape(heads, head_dim // 2, 2).swapaxes(1, 2).ravel()


def read_float32_matrix(
    tensor: GGUFTensor, row_order: RowOrder | None = None, empty: Allocator = torch.empty
) -> Float[Tensor, "columns rows"]:
    """A matrix as a plain tensor [in, out].

    In memory its longer axis is contiguous: the product with one row then reads long runs, which is faster.

    Parameters
    ----------
    tensor : GGUFTensor
        Of shape (rows, columns), that is (out, in).
    row_order : array of int [rows], optional
        The rows to take, in this order; None for all as they are.
    empty : callable
        Gives the memory.

    Raises
    ------
    GGUFError
        If a number is NaN or infinite: such a model says nothing, and says it late.
    """
    rows, columns = tensor.shape
    raw = tensor.read() if row_order is None else tensor.read()[row_order]
    matrix = empty(rows, columns).t() if rows < columns else empty(columns, rows)
    for start in range(0, rows, ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        matrix[:, some] = torch.from_numpy(finite(dequantize(raw[some], tensor.kind), tensor)).t()
    return matrix


def read_vector(tensor: GGUFTensor) -> Float[Tensor, " size"]:
    """A vector of float32, such as the weights of a norm."""
    return torch.from_numpy(finite(tensor.dequantize(), tensor))


def finite(values: Float[np.ndarray, "..."], tensor: GGUFTensor) -> Float[np.ndarray, "..."]:
    """The values, if all are finite."""
    if not np.isfinite(values).all():
        raise GGUFError(f"tensor {tensor.name!r} holds NaN or infinity", tensor.path, tensor.offset)
    return values


def read_packed_matrix(tensor: GGUFTensor, row_order: RowOrder | None = None, empty: Allocator = torch.empty) -> Matrix:
    """A matrix that stays in the 4 or 8 bits of the file; one that can't be packed is read as float32.

    Parameters and errors are those of `read_float32_matrix`. The matrix of tokens keeps its blocks for look-up.
    """
    if tensor.kind not in PACKERS or tensor.shape[0] % ROW_MULTIPLE:
        return read_float32_matrix(tensor, row_order, empty)
    blocks = tensor.read() if row_order is None else tensor.read()[row_order]
    try:
        matrix = pack(blocks, tensor.kind)
    except ValueError as error:
        raise GGUFError(f"tensor {tensor.name!r}: {error}", tensor.path, tensor.offset) from error
    return TokenMatrix(matrix, blocks, tensor.kind) if tensor.name == TOKEN_MATRIX else matrix


MATRIX_READERS: dict[str, MatrixReader] = {"float32": read_float32_matrix, "packed": read_packed_matrix}
"""The forms that matrices can be held in. This is the only place that decides: the stages take any of them."""
