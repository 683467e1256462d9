"""Tiny Llama models as GGUF files, written by the gguf package, and the metadata that such a file has."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import gguf as reference
import numpy as np

from llm_internals.byte_alphabet import CHARACTER_OF_BYTE
from llm_internals.config import LlamaConfig
from llm_internals.model import Weights

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("t h", "th e", "Ġ the", "i n")
TOKENS = (*SPECIAL_TOKENS, *CHARACTER_OF_BYTE, "th", "the", "Ġthe", "in")
TOKEN_TYPES = (3, 3, 3, *[1] * (len(TOKENS) - 3))

CONFIG = LlamaConfig(
    vocab_size=len(TOKENS),
    hidden_size=64,
    intermediate_size=160,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=24,
    rms_norm_eps=2.0**-17,
    rope_theta=10_000.0,
    max_position_embeddings=64,
    tie_word_embeddings=False,
)
"""Heads that share keys, a head that isn't hidden_size / heads wide, an untied output matrix, rows of whole blocks."""


def metadata_of(config: LlamaConfig) -> dict[str, Any]:
    """The metadata of a file with this config and the tokens above."""
    return {
        "general.architecture": "llama",
        "general.name": "tiny",
        "llama.block_count": config.num_hidden_layers,
        "llama.context_length": config.max_position_embeddings,
        "llama.embedding_length": config.hidden_size,
        "llama.feed_forward_length": config.intermediate_size,
        "llama.vocab_size": config.vocab_size,
        "llama.attention.head_count": config.num_attention_heads,
        "llama.attention.head_count_kv": config.num_key_value_heads,
        "llama.attention.key_length": config.head_dim,
        "llama.attention.value_length": config.head_dim,
        "llama.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "llama.rope.dimension_count": config.head_dim,
        "llama.rope.freq_base": config.rope_theta,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": list(TOKENS),
        "tokenizer.ggml.token_type": np.array(TOKEN_TYPES, dtype=np.int32),
        "tokenizer.ggml.merges": list(MERGES),
        "tokenizer.ggml.eos_token_id": 2,
    }


def interleaved(matrix: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a query or key matrix in the order of GGUF: `permute` of llama.cpp's converter, here on [out, in]."""
    return matrix.reshape(heads, 2, -1, matrix.shape[1]).swapaxes(1, 2).reshape(matrix.shape)


def tensors_of(weights: Weights) -> dict[str, np.ndarray]:
    """The tensors of a file with these weights, as float32, matrices [out, in]."""
    config = weights.config
    tensors = {"token_embd.weight": weights.embed_tokens.t().numpy(), "output_norm.weight": weights.norm.numpy()}
    if not config.tie_word_embeddings:
        tensors["output.weight"] = weights.lm_head.t().numpy()
    names = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output"}
    names |= {"gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down"}
    for index, layer in enumerate(weights.layers):
        tensors[f"blk.{index}.attn_norm.weight"] = layer.input_layernorm.numpy()
        tensors[f"blk.{index}.ffn_norm.weight"] = layer.post_attention_layernorm.numpy()
        for part in (layer.self_attn, layer.mlp):
            for field in fields(part):
                tensors[f"blk.{index}.{names[field.name]}.weight"] = getattr(part, field.name).t().numpy()
        for name, heads in (("attn_q", config.num_attention_heads), ("attn_k", config.num_key_value_heads)):
            tensors[f"blk.{index}.{name}.weight"] = interleaved(tensors[f"blk.{index}.{name}.weight"], heads)
    return tensors


def write_gguf(path: Path, metadata: Mapping[str, Any], tensors: Mapping[str, np.ndarray], kind: str = "F32") -> Path:
    """Write a file; matrices become blocks of ``kind``. A value of None is left out."""
    writer = reference.GGUFWriter(path, "llama")
    writer.kv_data[0].clear()  # the writer's own general.architecture: the metadata given are all that there is
    adders = {bool: writer.add_bool, str: writer.add_string, int: writer.add_int64, float: writer.add_float32}
    for key, value in metadata.items():
        if isinstance(value, np.ndarray):
            writer.add_array(key, value.tolist())
        elif value is not None:
            adders.get(type(value), writer.add_array)(key, value)
    for name, tensor in tensors.items():
        block_type = reference.GGMLQuantizationType[kind if tensor.ndim == 2 else "F32"]
        blocks = reference.quants.quantize(np.ascontiguousarray(tensor), block_type)
        writer.add_tensor(name, blocks, raw_dtype=block_type)
    finish(writer)
    return path


def finish(writer: reference.GGUFWriter) -> None:
    """Write out what a writer was given."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
