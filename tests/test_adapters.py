"""`llm_internals.adapters`: a small change on top of a model that stays as it is, and how it is trained."""

from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from llm_internals.adapters import ADAPTABLE, AdaptedMatrix, adapt, adapter_parameters, gradients_of, train
from llm_internals.generate import generate
from llm_internals.likelihood import next_logprobs
from llm_internals.linear import PackedMatrix, linear, rows
from llm_internals.model import forward
from llm_internals.sampling import SamplingParams
from tests.tiny_model import random_language_model, random_weights

EXACT = 1e-12
"""Float64: (x A) B and x (A B) sum in another order."""

IDS = [3, 1, 4, 1, 5]


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def all_matrices(weights):
    """Every matrix of every block, by layer, part and name."""
    return {
        (index, part, field.name): getattr(getattr(layer, part), field.name)
        for index, layer in enumerate(weights.layers)
        for part in ("self_attn", "mlp")
        for field in fields(getattr(layer, part))
    }


def distance(weights):
    """A loss: how far the adapters are from 1."""

    def measure(step):
        loss = sum(((parameter - 1) ** 2).sum() for parameter in adapter_parameters(weights))
        return loss, (step, float(loss.detach()))

    return measure


def test_a_product_and_a_row_by_hand():
    matrix = AdaptedMatrix(torch.eye(2), down=torch.tensor([[1.0], [1.0]]), up=torch.tensor([[0.0, 3.0]]))
    assert linear(torch.tensor([[1.0, 2.0]]), matrix).tolist() == [[1, 2 + 3 * 3]]
    assert rows(matrix, torch.tensor([1, 0])).tolist() == [[3, 4], [1, 0]]


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.lists(st.integers(1, 3), max_size=2))
def test_an_adapted_matrix_is_the_sum_of_its_parts(inputs, outputs, rank, batch):
    base, down, up = numbers(inputs, outputs), numbers(inputs, rank, seed=1), numbers(rank, outputs, seed=2)
    matrix, merged, x = AdaptedMatrix(base, down, up), base + down @ up, numbers(*batch, inputs, seed=3)
    assert isinstance(matrix, PackedMatrix)
    assert matrix.shape == tuple(merged.shape)
    torch.testing.assert_close(linear(x, matrix), linear(x, merged), rtol=0, atol=EXACT)
    ids = torch.arange(outputs).flip(0)
    torch.testing.assert_close(rows(matrix, ids), rows(merged, ids), rtol=0, atol=EXACT)


def test_adapters_stand_on_any_kind_of_weight_and_on_each_other():
    base, first, second = numbers(4, 3), (numbers(4, 1), numbers(1, 3)), (numbers(4, 2), numbers(2, 3))
    stacked = AdaptedMatrix(AdaptedMatrix(base, *first), *second)
    merged = base + first[0] @ first[1] + second[0] @ second[1]
    torch.testing.assert_close(linear(numbers(2, 4), stacked), numbers(2, 4) @ merged, rtol=0, atol=EXACT)


def test_a_new_adapter_changes_no_bit(tiny_config):
    weights = random_weights(tiny_config)
    adapted = adapt(weights, rank=4, targets=ADAPTABLE)
    assert torch.equal(forward(torch.tensor(IDS), adapted), forward(torch.tensor(IDS), weights))


def test_the_new_model_shares_every_tensor_of_the_old_one(tiny_config):
    weights = random_weights(tiny_config)
    adapted = adapt(weights, targets=("q_proj", "down_proj"))
    for place, matrix in all_matrices(adapted).items():
        base = all_matrices(weights)[place]
        assert (matrix.base if place[2] in {"q_proj", "down_proj"} else matrix) is base
    assert adapted.embed_tokens is weights.embed_tokens
    assert adapted.lm_head is weights.lm_head
    assert adapted.norm is weights.norm
    assert all(
        new.input_layernorm is old.input_layernorm for new, old in zip(adapted.layers, weights.layers, strict=True)
    )


def test_parameters_are_two_thin_matrices_for_each_target_of_each_layer(tiny_config):
    parameters = adapter_parameters(adapt(random_weights(tiny_config), rank=2))
    assert [tuple(p.shape) for p in parameters] == 3 * [(24, 2), (2, 48), (24, 2), (2, 16)]


def test_the_real_model_gets_a_third_of_a_percent_of_its_parameters(lm):
    assert sum(parameter.numel() for parameter in adapter_parameters(adapt(lm.weights))) == 460_800


def test_down_starts_within_its_bound_and_up_at_zero(tiny_config):
    parameters = adapter_parameters(adapt(random_weights(tiny_config), rank=8))
    downs, ups = parameters[::2], parameters[1::2]
    assert max(float(down.abs().max()) for down in downs) <= 24**-0.5
    assert max(float(down.abs().max()) for down in downs) > 0.9 * 24**-0.5
    assert all(not up.any() for up in ups)


def test_a_seed_gives_the_same_start_and_another_seed_another(tiny_config):
    weights = random_weights(tiny_config)
    first, again, other = (adapter_parameters(adapt(weights, seed=seed)) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    assert not torch.equal(first[0], first[4])  # layers differ


def test_the_order_in_which_targets_are_named_changes_nothing(tiny_config):
    weights = random_weights(tiny_config)
    one, other = (
        adapter_parameters(adapt(weights, targets=names)) for names in (["v_proj", "q_proj"], ["q_proj", "v_proj"])
    )
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("rank", [0, -1])
def test_a_rank_below_1_is_refused(tiny_config, rank):
    with pytest.raises(ValueError, match=f"rank must be at least 1, but is {rank}"):
        adapt(random_weights(tiny_config), rank=rank)


@pytest.mark.parametrize("targets", [(), ("q",), ("q_proj", "norm")])
def test_a_target_that_a_block_does_not_have_is_refused(tiny_config, targets):
    with pytest.raises(ValueError, match=r"targets must be one or more of q_proj, k_proj, .*down_proj, but is"):
        adapt(random_weights(tiny_config), targets=targets)


def test_a_model_without_adapters_has_nothing_to_train(tiny_config):
    with pytest.raises(ValueError, match=r"make them with adapt\(weights\)"):
        adapter_parameters(random_weights(tiny_config))


def test_gradients_are_recorded_inside_the_context_and_nowhere_else(tiny_config):
    adapted = adapt(random_weights(tiny_config))
    with torch.no_grad(), gradients_of(adapter_parameters(adapted)):
        assert next_logprobs(IDS, adapted).requires_grad
    assert not next_logprobs(IDS, adapted).requires_grad


def test_gradients_stop_after_an_error_too(tiny_config):
    parameters = adapter_parameters(adapt(random_weights(tiny_config)))
    with pytest.raises(ZeroDivisionError), gradients_of(parameters):
        _ = 1 / 0
    assert not any(parameter.requires_grad for parameter in parameters)


def test_training_yields_before_the_first_update_and_after_each(tiny_config):
    adapted = adapt(random_weights(tiny_config))
    records = list(train(adapted, distance(adapted), steps=5, learning_rate=0.1))
    assert [step for step, _ in records] == [0, 1, 2, 3, 4, 5]
    losses = [loss for _, loss in records]
    assert losses == sorted(losses, reverse=True)
    assert float(distance(adapted)(5)[0]) == losses[-1]


def test_the_step_size_falls_in_a_line_from_its_first_value_to_zero(tiny_config):
    """Adam's first step is the step size itself; with a constant gradient so is each further one."""
    adapted = adapt(random_weights(tiny_config, dtype=torch.float64))
    up = adapter_parameters(adapted)[1]
    seen = [float(up[0, 0]) for _ in train(adapted, lambda step: (-up.sum(), None), steps=4, learning_rate=0.1)]
    assert seen == pytest.approx([0, 0.1, 0.175, 0.225, 0.25], abs=1e-6)  # Adam adds 1e-8 to the root


def test_no_steps_measure_once_and_change_nothing(tiny_config):
    adapted = adapt(random_weights(tiny_config))
    before = [parameter.clone() for parameter in adapter_parameters(adapted)]
    assert len(list(train(adapted, distance(adapted), steps=0, learning_rate=0.1))) == 1
    assert all(torch.equal(a, b) for a, b in zip(adapter_parameters(adapted), before, strict=True))


def test_training_writes_to_the_adapters_and_to_nothing_else(tiny_config):
    weights = random_weights(tiny_config)
    tensors = [
        m for m in [*all_matrices(weights).values(), weights.embed_tokens, weights.norm] if isinstance(m, Tensor)
    ]
    before = [tensor.clone() for tensor in tensors]
    adapted = adapt(weights, targets=ADAPTABLE)
    measure = lambda step: (-next_logprobs(IDS, adapted)[7], None)  # noqa: E731
    list(train(adapted, measure, steps=3, learning_rate=0.1))
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(tensors, before, strict=True))
    assert not any(tensor.requires_grad or tensor.grad is not None for tensor in tensors)
    assert all(parameter.any() for parameter in adapter_parameters(adapted))


def test_a_page_may_run_the_model_between_two_steps_and_after_stopping_early(tiny_config):
    adapted = adapt(random_weights(tiny_config))
    for step, _ in train(adapted, distance(adapted), steps=5, learning_rate=0.1):
        assert not next_logprobs(IDS, adapted).requires_grad
        if step == 2:
            break
    assert not next_logprobs(IDS, adapted).requires_grad


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": -1, "learning_rate": 0.1}, "steps must be at least 0, but is -1"),
        ({"steps": 1, "learning_rate": 0.0}, "learning_rate must be a finite number above 0, but is 0.0"),
        ({"steps": 1, "learning_rate": float("nan")}, "learning_rate must be a finite number above 0, but is nan"),
        ({"steps": 1, "learning_rate": float("inf")}, "learning_rate must be a finite number above 0, but is inf"),
    ],
)
def test_a_setting_out_of_range_is_refused_before_anything_runs(tiny_config, settings, message):
    adapted = adapt(random_weights(tiny_config))
    with pytest.raises(ValueError, match=message):
        train(adapted, distance(adapted), **settings)


def test_an_adapted_model_generates_like_any_other():
    lm = random_language_model()
    adapted = replace(lm, weights=adapt(lm.weights))
    up = adapter_parameters(adapted.weights)[1]
    params = SamplingParams(temperature=0)
    same = [[step.id for step in generate(model, [2, 3], params, max_tokens=8)] for model in (lm, adapted)]
    assert same[0] == same[1]
    up += 5 * torch.randn(up.shape, generator=torch.Generator().manual_seed(0))
    assert [step.id for step in generate(adapted, [2, 3], params, max_tokens=8)] != same[0]
