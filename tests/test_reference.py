"""The whole model against others: stored logits, the same weights in float64, and transformers.

Three independent witnesses.
The stored logits come from another float64 implementation, and our float64 pass has to reproduce them.
The float64 pass then says how much of the float32 logits is rounding, at every position and for all 49,152 tokens.
transformers has the same weights in its own modules, and is compared in the logits and in every named activation.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers.models.llama import modeling_llama

from llm_internals.config import LlamaConfig
from llm_internals.kv_cache import KVCache
from llm_internals.logits import lm_head
from llm_internals.model import forward
from llm_internals.tap import Recorder
from tests.reference import cast, transformers_model
from tests.tiny_model import random_weights

VECTORS = json.loads((Path(__file__).parent / "data" / "logits.json").read_text(encoding="utf-8"))["logits"]
NAMES = list(VECTORS)

STORED = 2e-6
"""The logits are stored with six decimals; our float64 pass differs from the other one by less than that."""
FLOAT32 = 5e-4
"""Rounding of 30 layers whose stream reaches 23,000: measured 1.7e-4 at up to 512 tokens, with room for other CPUs."""
TRANSFORMERS = 1e-3
"""Both sides round: twice the distance of one of them from float64."""
TINY = 2e-5
"""Logits of size 1 of random models with up to three layers, in float32: measured 4e-6."""
ACTIVATION = 2e-5
"""Relative to the largest number of the activation: two orders of summation in float32, measured 3e-6."""
BLOCK = 5
"""A block with the first token's massive activations already in its stream."""


def logits(ids, weights, cache=None):
    return lm_head(forward(torch.tensor(ids), weights, cache), weights)


def largest_difference(ours, theirs):
    return float((ours.double() - theirs.double()).abs().max())


@pytest.fixture(scope="module")
def ours(lm):
    """Logits of each stored prompt at every position, all positions at once."""
    return {name: logits(case["ids"], lm.weights) for name, case in VECTORS.items()}


@pytest.fixture(scope="module")
def exact(lm):
    """The same in float64: the same weights, widened."""
    weights = cast(lm.weights, torch.float64)
    return {name: logits(case["ids"], weights) for name, case in VECTORS.items()}


@pytest.fixture(scope="module")
def theirs(lm):
    return transformers_model(lm.weights)


@pytest.mark.parametrize("name", NAMES)
def test_the_float64_pass_gives_the_stored_logits(exact, name):
    case, last = VECTORS[name], exact[name][-1]
    values, ids = last.topk(10)
    assert ids.tolist() == case["last_top10_ids"]
    assert values.tolist() == pytest.approx(case["last_top10_logits"], abs=STORED)
    assert float(last.logsumexp(0)) == pytest.approx(case["last_logsumexp"], abs=STORED)
    assert float(last.mean()) == pytest.approx(case["last_mean"], abs=STORED)


@pytest.mark.parametrize("name", NAMES)
def test_the_float32_pass_gives_the_stored_logits(ours, name):
    case, last = VECTORS[name], ours[name][-1]
    values, ids = last.topk(10)
    assert ids.tolist() == case["last_top10_ids"]
    assert values.tolist() == pytest.approx(case["last_top10_logits"], abs=FLOAT32)
    assert float(last.logsumexp(0)) == pytest.approx(case["last_logsumexp"], abs=FLOAT32)


@pytest.mark.parametrize("name", [name for name in NAMES if "argmax_per_pos" in VECTORS[name]])
def test_the_likeliest_next_token_is_the_stored_one_at_every_position(ours, name):
    assert ours[name].argmax(-1).tolist() == VECTORS[name]["argmax_per_pos"]


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_float64_but_for_rounding_at_every_position(ours, exact, name):
    assert largest_difference(ours[name], exact[name]) <= FLOAT32
    assert torch.equal(ours[name].argmax(-1), exact[name].argmax(-1))


@pytest.mark.parametrize("name", NAMES)
def test_transformers_gives_the_same_logits_at_every_position(ours, theirs, name):
    """bugs G6: 512 tokens, where a wrong pairing of RoPE would long have turned into gibberish."""
    expected = theirs(torch.tensor([VECTORS[name]["ids"]]), use_cache=False).logits[0]
    assert largest_difference(ours[name], expected) <= TRANSFORMERS
    assert torch.equal(ours[name].argmax(-1), expected.argmax(-1))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("hello", [1, 1]), ("chat_france", [1] * 37), ("chat_france", [3, 1, 17, 16]), ("long", [1, 7, 129, 3, 251, 121])],
)
def test_cached_and_chunked_runs_give_the_logits_of_the_whole(lm, ours, name, sizes):
    """bugs G1: the cache has a stated tolerance, and float32 keeps it."""
    cache = KVCache.empty(lm.config, capacity=sum(sizes))
    parts = [logits(part.tolist(), lm.weights, cache) for part in torch.tensor(VECTORS[name]["ids"]).split(sizes)]
    chunked = torch.cat(parts)
    assert largest_difference(chunked, ours[name]) <= FLOAT32
    assert torch.equal(chunked.argmax(-1), ours[name].argmax(-1))


def transformers_activations(model, ids, monkeypatch):
    """What each module of transformers' block `BLOCK` takes and gives, under our names; heads before positions."""
    layer, seen = model.model.layers[BLOCK], {}
    heads = {"q": layer.self_attn.q_proj, "k": layer.self_attn.k_proj, "v": layer.self_attn.v_proj}
    outputs = {
        "ln1.normalized": layer.input_layernorm,
        "attn_out": layer.self_attn,
        "ln2.normalized": layer.post_attention_layernorm,
        "mlp.pre": layer.mlp.gate_proj,
        "mlp.pre_linear": layer.mlp.up_proj,
        "mlp_out": layer.mlp,
        "resid_post": layer,
        **{f"attn.{name}": module for name, module in heads.items()},
    }
    inputs = {
        "resid_pre": layer.input_layernorm,
        "resid_mid": layer.post_attention_layernorm,
        "mlp.post": layer.mlp.down_proj,
        "attn.z": layer.self_attn.o_proj,
    }

    def keep(name, value):
        value = value[0] if isinstance(value, tuple) else value
        value = value[0]  # the only text of the batch
        by_head = name in ("attn.q", "attn.k", "attn.v", "attn.z")
        seen[name] = value.unflatten(-1, (-1, layer.self_attn.head_dim)).transpose(0, 1) if by_head else value

    def attend(module, query, key, value, mask, scaling, **kwargs):
        output, pattern = eager(module, query, key, value, mask, scaling, **kwargs)
        if module is layer.self_attn:
            scores = query @ modeling_llama.repeat_kv(key, module.num_key_value_groups).transpose(2, 3) * scaling + mask
            seen.update(
                {
                    "attn.rot_q": query[0],
                    "attn.rot_k": key[0],
                    "attn.attn_scores": scores[0],
                    "attn.pattern": pattern[0],
                }
            )
        return output, pattern

    eager = modeling_llama.eager_attention_forward
    monkeypatch.setattr(modeling_llama, "eager_attention_forward", attend)
    hooks = [
        module.register_forward_hook(lambda _, args, output, name=name: keep(name, output))
        for name, module in outputs.items()
    ]
    hooks += [
        module.register_forward_pre_hook(lambda _, args, name=name: keep(name, args[0]))
        for name, module in inputs.items()
    ]
    hidden = model.model(torch.tensor([ids]), use_cache=False).last_hidden_state[0]
    for hook in hooks:
        hook.remove()
    return seen, hidden


def test_every_named_activation_of_a_block_is_that_of_transformers(lm, theirs, monkeypatch):
    ids, recorder = VECTORS["chat_france"]["ids"], Recorder(f"blocks.{BLOCK}.*", "ln_final.normalized")
    forward(torch.tensor(ids), lm.weights, tap=recorder)
    expected, hidden = transformers_activations(theirs, ids, monkeypatch)
    expected = {f"blocks.{BLOCK}.{name}": value for name, value in expected.items()}
    expected["ln_final.normalized"] = hidden
    assert set(expected) == set(recorder.tensors)
    for name, value in expected.items():
        seen = recorder[name]
        if name.endswith("attn_scores"):  # they mask with the lowest float32, we with -inf
            assert torch.equal(seen == -torch.inf, value < -1e30)
            seen, value = seen.masked_fill(seen == -torch.inf, 0.0), value.masked_fill(value < -1e30, 0.0)
        assert seen.shape == value.shape, name
        assert largest_difference(seen, value) <= ACTIVATION * float(value.abs().max()), name


TINY_CONFIG = LlamaConfig(
    vocab_size=50,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=8,
    rms_norm_eps=1e-5,
    rope_theta=1e4,
    max_position_embeddings=64,
    tie_word_embeddings=True,
)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_key_value_heads": 3},
        {"num_key_value_heads": 6},
        {"num_key_value_heads": 1},
        {"tie_word_embeddings": False},
        {"head_dim": 4},
        {"head_dim": 2, "num_attention_heads": 1, "num_key_value_heads": 1},
        {"head_dim": 32, "num_attention_heads": 4, "num_key_value_heads": 2},
        {"num_hidden_layers": 1, "intermediate_size": 7, "hidden_size": 12},
        {"num_hidden_layers": 3, "rope_theta": 500.0, "rms_norm_eps": 0.1},
    ],
    ids=str,
)
def test_a_random_model_of_any_shape_agrees_with_transformers(changes):
    """bugs G5: query groups of 1, 2, 3 and 6; tied and untied; heads together narrower or wider than the stream."""
    weights = random_weights(replace(TINY_CONFIG, **changes), seed=1)
    ids = torch.randint(50, (40,), generator=torch.Generator().manual_seed(2))
    expected = transformers_model(weights)(ids[None], use_cache=False).logits[0]
    found = lm_head(forward(ids, weights), weights)
    assert float(expected.std()) > 0.5  # there is something to compare
    assert largest_difference(found, expected) <= TINY
