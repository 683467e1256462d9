"""The settings check themselves, and an order is a permutation of the operators."""

import copy
import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.sampling_params import NEUTRAL, ORDERS, SamplingParams

DATA = Path(__file__).parent / "data"
SETTINGS = {field.name for field in dataclasses.fields(SamplingParams)}
PUBLISHED = [
    (row["parameter"], row["value"])
    for row in json.loads((DATA / "sampling.json").read_text(encoding="utf-8"))["pathological"]
    if row.get("parameter") in SETTINGS
]

OUT_OF_RANGE = [
    ("temperature", [-1.0, -1e-9, math.nan, math.inf, 10**400, "1", None, True]),
    ("top_k", [-1, 2.5, "5", True]),
    ("top_p", [-0.1, 1.1, math.nan, math.inf, "0.9", None, False]),
    ("min_p", [-0.1, 1.1, math.nan, None]),
    ("typical_p", [-0.1, 1.5, math.nan, None]),
    ("repetition_penalty", [0, 0.0, -1.0, math.nan, math.inf, None, True]),
    ("presence_penalty", [math.nan, math.inf, "1", None]),
    ("frequency_penalty", [math.nan, -math.inf, None]),
    ("no_repeat_ngram_size", [-1, 1.5, None, True]),
    (
        "logit_bias",
        [5, [1, 2], {-1: 1.0}, {"1": 1.0}, {1.5: 1.0}, {True: 1.0}, {1: math.nan}, {1: math.inf}, {1: None}],
    ),
    ("banned_ids", [5, None, "12", [-1], [1.5], ["a"], [True]]),
    ("seed", [-1, 1.5, "7", True, math.nan]),
    ("order", [None, "vllm", 3, (), ORDERS["vllm"][1:], (*ORDERS["vllm"], "top_k"), (*ORDERS["vllm"][1:], "top_a")]),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in OUT_OF_RANGE for value in values])
def test_a_setting_out_of_range_raises_and_names_itself_what_is_allowed_and_the_value(name, value):
    with pytest.raises(ValueError, match=rf"^{name}.* (must be|must name) .*, got ") as error:
        SamplingParams(**{name: value})
    if name != "order" and not isinstance(value, dict | list):
        assert str(error.value).endswith(f", got {value!r}")


@pytest.mark.parametrize(("name", "value"), PUBLISHED)
def test_a_published_bad_setting_raises(name, value):
    with pytest.raises(ValueError, match=name):
        SamplingParams(**{name: math.nan if value == "NaN" else value})


def test_bug_a6_a_top_p_of_nan_raises():
    """transformers 5.24 accepts it."""
    with pytest.raises(ValueError, match=r"top_p must be a number in \[0, 1\], got nan"):
        SamplingParams(top_p=math.nan)


def test_an_order_says_what_is_unknown_repeated_or_missing():
    with pytest.raises(ValueError, match="got unknown: top_a; repeated: top_k; missing: min_p, typical_p"):
        SamplingParams(order=[*(set(NEUTRAL) - {"min_p", "typical_p"}), "top_a", "top_k"])


def test_an_order_with_something_that_is_no_name_raises():
    with pytest.raises(ValueError, match=r"order must name each of .*, got unknown: 3; missing: typical_p"):
        SamplingParams(order=[*ORDERS["transformers"][:-1], 3])


@pytest.mark.parametrize("engine", ORDERS)
def test_the_order_of_an_engine_names_each_operator_once(engine):
    assert sorted(ORDERS[engine]) == sorted(NEUTRAL)
    assert SamplingParams(order=ORDERS[engine]).order == ORDERS[engine]


@given(st.permutations(ORDERS["transformers"]))
def test_any_permutation_is_an_order(order):
    assert SamplingParams(order=order).order == tuple(order)


def places(engine, *names):
    return [ORDERS[engine].index(name) for name in names]


def test_the_four_orders_are_those_of_the_engines():
    for engine, names in {
        "transformers": [
            "logit_bias",
            "repetition_penalty",
            "no_repeat_ngram_size",
            "temperature",
            "top_k",
            "top_p",
            "min_p",
            "typical_p",
        ],
        "vllm": [
            "banned_ids",
            "logit_bias",
            "repetition_penalty",
            "frequency_penalty",
            "presence_penalty",
            "temperature",
            "min_p",
            "top_k",
            "top_p",
        ],
        "llama.cpp": ["logit_bias", "repetition_penalty", "top_k", "typical_p", "top_p", "min_p", "temperature"],
        "mlx-lm": ["logit_bias", "repetition_penalty", "top_p", "min_p", "top_k", "temperature"],
    }.items():
        assert places(engine, *names) == sorted(places(engine, *names)), engine


def test_the_defaults_change_nothing_and_are_the_neutral_settings():
    params = SamplingParams()
    assert {name: getattr(params, name) for name in NEUTRAL} == dict(NEUTRAL)
    assert not any(params.is_active(name) for name in NEUTRAL)
    assert params.order == ORDERS["transformers"]
    assert params.seed is None


ACTIVE = {
    "temperature": 0.0,
    "top_k": 1,
    "top_p": 0.0,
    "min_p": 1.0,
    "typical_p": 0.5,
    "repetition_penalty": 2,
    "presence_penalty": -1,
    "frequency_penalty": 1,
    "no_repeat_ngram_size": 1,
    "logit_bias": {0: 0.5},
    "banned_ids": [0],
}


@pytest.mark.parametrize("name", NEUTRAL)
def test_an_operator_is_active_when_its_setting_is_not_neutral(name):
    params = SamplingParams(**{name: ACTIVE[name]})
    assert [other for other in NEUTRAL if params.is_active(other)] == [name]


def test_none_and_empty_are_off():
    params = SamplingParams(top_k=None, logit_bias={}, banned_ids=[])
    assert not any(params.is_active(name) for name in NEUTRAL)


def test_numpy_numbers_and_whole_floats_are_taken_as_plain_numbers():
    params = SamplingParams(
        temperature=1, top_k=np.int64(5), top_p=np.float32(0.5), logit_bias={np.int64(3): 2}, banned_ids={4}
    )
    assert (params.temperature, params.top_k, params.top_p, params.logit_bias, params.banned_ids) == (
        1.0,
        5,
        0.5,
        {3: 2.0},
        (4,),
    )
    assert [type(params.temperature), type(params.top_k), type(params.top_p)] == [float, int, float]


def test_settings_are_frozen_and_keep_no_reference_to_the_callers_dictionary():
    bias = {0: 1.0}
    params = SamplingParams(logit_bias=bias)
    bias[1] = 2.0
    assert params.logit_bias == {0: 1.0}
    with pytest.raises(dataclasses.FrozenInstanceError):
        params.top_k = 5


def test_settings_compare_copy_hash_and_go_through_json():
    params = SamplingParams(temperature=0.7, logit_bias={5: -1.0}, banned_ids=[1, 2], seed=3, order=ORDERS["mlx-lm"])
    assert params == copy.deepcopy(params)
    assert hash(params) == hash(copy.deepcopy(params))
    stored = json.loads(json.dumps(dataclasses.asdict(params)))
    stored["logit_bias"] = {
        int(token): value for token, value in stored["logit_bias"].items()
    }  # JSON has only text keys
    assert SamplingParams(**stored) == params
    assert dataclasses.replace(params, top_k=4).top_k == 4
    with pytest.raises(ValueError, match="top_k"):
        dataclasses.replace(params, top_k=-4)
