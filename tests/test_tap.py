"""`llm_internals.tap`: what a stage reports, who may listen, and what a replacement does."""

import pytest
import torch

from llm_internals.kv_cache import KVCache
from llm_internals.model import forward
from llm_internals.tap import Recorder, prefixed, report, scaled
from tests.tiny_model import random_weights

IDS = torch.tensor([3, 1, 4, 1, 5, 9])

NAMES_OF_A_BLOCK = [
    "resid_pre",
    "ln1.normalized",
    "attn.q",
    "attn.k",
    "attn.v",
    "attn.rot_q",
    "attn.rot_k",
    "attn.attn_scores",
    "attn.pattern",
    "attn.z",
    "attn_out",
    "resid_mid",
    "ln2.normalized",
    "mlp.pre",
    "mlp.pre_linear",
    "mlp.post",
    "mlp_out",
    "resid_post",
]


def test_without_a_tap_a_value_passes_untouched():
    value = torch.ones(2)
    assert report(None, "resid_pre", value) is value
    assert prefixed(None, "blocks.0.") is None


def test_a_tap_that_returns_nothing_changes_nothing():
    value = torch.ones(2)
    assert report(lambda name, value: None, "resid_pre", value) is value


def test_what_a_tap_returns_takes_the_value_s_place():
    replacement = torch.zeros(2)
    assert report(lambda name, value: replacement, "resid_pre", torch.ones(2)) is replacement


@pytest.mark.parametrize("replacement", [torch.zeros(3), torch.zeros(1, 2), torch.zeros(2, dtype=torch.float64)])
def test_a_replacement_of_another_shape_or_dtype_is_refused_by_name(replacement):
    with pytest.raises(ValueError, match=r"replace 'resid_pre' by a tensor of shape \(2,\) and dtype torch.float32"):
        report(lambda name, value: replacement, "resid_pre", torch.ones(2))


def test_a_factor_of_zero_silences_a_part_and_a_mask_a_part_of_a_result(tiny_config):
    weights, before, after = random_weights(tiny_config), Recorder(), Recorder()
    forward(IDS, weights, tap=before)
    keep = torch.ones(len(IDS), 1)
    keep[0] = 0
    tap = scaled({"blocks.0.attn_out": 0, "blocks.1.mlp_out": keep})
    forward(IDS, weights, tap=lambda name, value: after(name, report(tap, name, value)) or tap(name, value))
    assert torch.equal(after["blocks.0.resid_mid"], before["blocks.0.resid_pre"])
    assert torch.equal(after["blocks.1.resid_post"][0], after["blocks.1.resid_mid"][0])
    assert (after["blocks.1.resid_post"][1:] != after["blocks.1.resid_mid"][1:]).any(dim=-1).all()
    assert tap("blocks.0.mlp_out", torch.ones(2)) is None


def test_a_pass_reports_every_activation_by_name_in_the_order_of_computation(tiny_config):
    recorder = Recorder()
    forward(IDS, random_weights(tiny_config), tap=recorder)
    blocks = [f"blocks.{index}.{name}" for index in range(tiny_config.num_hidden_layers) for name in NAMES_OF_A_BLOCK]
    assert list(recorder.tensors) == ["embed", *blocks, "ln_final.normalized"]


def test_activations_have_the_shapes_that_their_axes_say(tiny_config):
    recorder = Recorder("blocks.1.*")
    cache = KVCache.empty(tiny_config, capacity=10)
    forward(IDS[:4], random_weights(tiny_config), cache)
    forward(IDS[4:], random_weights(tiny_config), cache, tap=recorder)
    stream, kv, q, inner = (2, 24), (2, 2, 8), (6, 2, 8), (2, 40)
    shapes = [stream, stream, q, kv, kv, q, kv, (6, 2, 6), (6, 2, 6), q, stream, stream, stream]
    shapes += [inner, inner, inner, stream, stream]
    assert [tuple(tensor.shape) for tensor in recorder.tensors.values()] == shapes


def test_a_recorder_keeps_what_matches_one_of_its_patterns():
    recorder = Recorder("blocks.*.resid_post", "embed")
    for name in ("embed", "blocks.0.resid_pre", "blocks.0.resid_post", "blocks.11.resid_post"):
        report(recorder, name, torch.ones(1))
    assert list(recorder.tensors) == ["embed", "blocks.0.resid_post", "blocks.11.resid_post"]
    assert recorder["embed"] is recorder.tensors["embed"]


def test_a_recorder_keeps_copies_that_later_changes_do_not_reach():
    recorder, value = Recorder(), torch.ones(2)
    report(recorder, "embed", value)
    value.zero_()
    assert recorder["embed"].tolist() == [1, 1]


@pytest.mark.parametrize("cached", [False, True])
def test_recording_changes_no_output_by_a_single_bit(tiny_config, cached):
    weights = random_weights(tiny_config)

    def run(tap):
        cache = KVCache.empty(tiny_config, capacity=6) if cached else None
        return torch.cat([forward(part, weights, cache, tap) for part in IDS.split(4 if cached else 6)])

    assert torch.equal(run(None), run(Recorder()))


def test_recording_changes_no_output_of_the_real_model_by_a_single_bit(lm):
    ids = torch.tensor(lm.tokenizer.encode("The capital of Australia is"))
    assert torch.equal(forward(ids, lm.weights), forward(ids, lm.weights, tap=Recorder()))


def test_a_tap_can_take_out_one_head(tiny_config):
    """Zeroing a head's output z is the same as a model in which that head's rows of the output matrix are zero."""
    weights = random_weights(tiny_config)

    def without_head_4(name, value):
        if name == "blocks.1.attn.z":
            value = value.clone()
            value[4] = 0
            return value

    ablated = forward(IDS, weights, tap=without_head_4)
    assert not torch.allclose(ablated, forward(IDS, weights))
    head_dim = tiny_config.head_dim
    weights.layers[1].self_attn.o_proj[4 * head_dim : 5 * head_dim] = 0
    torch.testing.assert_close(ablated, forward(IDS, weights))


def test_a_stage_goes_on_with_the_replacement_and_not_with_what_it_had(tiny_config):
    """Whatever stands before, the hidden state is that of the replacement."""
    weights = random_weights(tiny_config)
    patched = Recorder("blocks.1.resid_post")
    forward(IDS, weights, tap=patched)

    def patch(name, value):
        return patched["blocks.1.resid_post"] if name == "blocks.1.resid_post" else None

    assert torch.equal(forward(IDS.flip(0), weights, tap=patch), forward(IDS, weights))


@pytest.mark.parametrize("name", ["embed", *(f"blocks.2.{name}" for name in NAMES_OF_A_BLOCK), "ln_final.normalized"])
def test_every_activation_can_be_replaced_and_a_wrong_shape_is_refused(tiny_config, name):
    weights = random_weights(tiny_config)

    def zero(reported, value):
        return torch.zeros_like(value) if reported == name else None

    def cut(reported, value):
        return value[..., :-1] if reported == name else None

    assert not torch.equal(forward(IDS, weights, tap=zero), forward(IDS, weights))
    with pytest.raises(ValueError, match=f"must replace '{name}'"):
        forward(IDS, weights, tap=cut)
