"""What the model is compared with: transformers on the same weights, and the same weights in float64."""

from dataclasses import asdict, fields, replace
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.models.llama.modeling_llama import LlamaForCausalLM, LlamaRotaryEmbedding

from llm_internals.config import LlamaConfig
from llm_internals.model import Weights


def transformers_config(config: LlamaConfig) -> transformers.LlamaConfig:
    """The same config for transformers, with attention written out as in the book."""
    values = asdict(config)
    rope = {"rope_type": "default", "rope_theta": values.pop("rope_theta")}
    return transformers.LlamaConfig(**values, rope_parameters=rope, attn_implementation="eager")


def transformers_model(weights: Weights) -> LlamaForCausalLM:
    """transformers' Llama around views of float ``weights``: nothing is copied, nothing is fetched."""
    config = transformers_config(weights.config)
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.load_state_dict(state_dict(weights), assign=True)
    model.model.rotary_emb = LlamaRotaryEmbedding(config)  # its frequencies aren't weights, so they are still "meta"
    return model.eval().requires_grad_(False)


def state_dict(weights: Weights) -> dict[str, Tensor]:
    """The weights under their names in a Hugging Face checkpoint, matrices as [out, in]."""
    state = {
        "model.embed_tokens.weight": weights.embed_tokens.t(),
        "model.norm.weight": weights.norm,
        "lm_head.weight": weights.lm_head.t(),
    }
    for index, layer in enumerate(weights.layers):
        prefix = f"model.layers.{index}."
        state[f"{prefix}input_layernorm.weight"] = layer.input_layernorm
        state[f"{prefix}post_attention_layernorm.weight"] = layer.post_attention_layernorm
        for part in ("self_attn", "mlp"):
            matrices = getattr(layer, part)
            for field in fields(matrices):
                state[f"{prefix}{part}.{field.name}.weight"] = getattr(matrices, field.name).t()
    return state


def cast(weights: Any, dtype: torch.dtype) -> Any:
    """The same weights in another dtype: every tensor of a nest of dataclasses and tuples."""
    if isinstance(weights, Tensor):
        return weights.to(dtype)
    if isinstance(weights, tuple):
        return tuple(cast(part, dtype) for part in weights)
    parts = {field.name: getattr(weights, field.name) for field in fields(weights) if field.name != "config"}
    return replace(weights, **{name: cast(part, dtype) for name, part in parts.items()})
