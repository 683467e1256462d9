"""`llm_internals.config`: what a config may say, under the names that a config.json uses."""

from dataclasses import FrozenInstanceError, asdict, fields, replace

import pytest
import transformers

from llm_internals.config import LlamaConfig

INTEGERS = [field.name for field in fields(LlamaConfig) if field.type is int]
NUMBERS = [field.name for field in fields(LlamaConfig) if field.type is float]


def test_every_field_is_a_key_of_a_llama_config_json():
    known = transformers.LlamaConfig(head_dim=64).to_dict()
    known["rope_theta"] = known["rope_parameters"]["rope_theta"]  # where transformers 5 keeps it
    assert {field.name for field in fields(LlamaConfig)} <= set(known)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("value", [0, -2, True, 2.0, "2", None])
def test_a_size_that_is_no_positive_integer_is_refused_by_name(tiny_config, name, value):
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, but is {value!r}"):
        replace(tiny_config, **{name: value})


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan"), True, "1e-5", None])
def test_an_epsilon_or_a_base_that_is_not_above_0_and_finite_is_refused_by_name(tiny_config, name, value):
    with pytest.raises(ValueError, match=f"{name} must be a finite number above 0, but is {value!r}"):
        replace(tiny_config, **{name: value})


def test_tying_is_a_yes_or_no(tiny_config):
    with pytest.raises(ValueError, match="tie_word_embeddings must be True or False, but is 1"):
        replace(tiny_config, tie_word_embeddings=1)


def test_query_heads_that_cannot_be_shared_out_evenly_are_refused(tiny_config):
    with pytest.raises(ValueError, match=r"num_attention_heads \(6\) must be a multiple of num_key_value_heads \(4\)"):
        replace(tiny_config, num_key_value_heads=4)


def test_an_odd_head_has_no_pairs_to_rotate(tiny_config):
    with pytest.raises(ValueError, match=r"head_dim must be even, .* but is 7"):
        replace(tiny_config, head_dim=7)


@pytest.mark.parametrize(("heads", "kv_heads", "shared_by"), [(9, 3, 3), (4, 4, 1), (8, 1, 8)])
def test_each_key_value_head_serves_as_many_query_heads_as_come_out_even(tiny_config, heads, kv_heads, shared_by):
    config = replace(tiny_config, num_attention_heads=heads, num_key_value_heads=kv_heads)
    assert config.queries_per_kv_head == shared_by


def test_heads_together_need_not_be_as_wide_as_the_stream(tiny_config):
    assert tiny_config.num_attention_heads * tiny_config.head_dim != tiny_config.hidden_size


def test_a_config_cannot_be_changed(tiny_config):
    with pytest.raises(FrozenInstanceError):
        tiny_config.hidden_size = 8


def test_the_real_model_has_the_published_sizes(lm):
    sizes = asdict(lm.config)
    assert sizes.pop("rms_norm_eps") == pytest.approx(1e-5, rel=1e-7)  # the file stores it in float32
    assert sizes == {
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "rope_theta": 1e5,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    }
