"""`llm_internals.generate`: the loop, its stop rules, its cache, and what each step reports.

Most tests run on models of sixteen tokens (`tiny_model`): chains that say what they are told to, tables of known
logits, and random weights where the answer has to depend on everything before. The real model answers at the end.
"""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from llm_internals import generate as generation
from llm_internals import model
from llm_internals.chat import encode_chat
from llm_internals.generate import generate
from llm_internals.kv_cache import KVCache
from llm_internals.logits import lm_head
from llm_internals.model import forward
from llm_internals.sampling import SamplingParams, distribution, draw
from llm_internals.scores import log_softmax
from llm_internals.tap import Recorder
from tests.tiny_model import ID, TOKENS, bigram_language_model, chain_language_model, random_language_model

GREEDY_VECTORS = json.loads((Path(__file__).parent / "data" / "logits.json").read_text(encoding="utf-8"))["greedy"]
GREEDY = SamplingParams(temperature=0)
SAMPLED = SamplingParams(temperature=1.5, top_k=9, seed=3)
PROMPT = [1, 4, 2, 8, 5, 7]

FLOAT32 = 1e-5
"""Log-probabilities of a tiny float32 model whose positions were computed in passes of other lengths."""
CACHED = 1e-3
"""A log-probability of the real model: 5e-4 for its logit and 5e-4 for the logarithm of the sum."""
TWO_DECIMALS = 6e-3
"""Half a unit of the second decimal, and 1e-3 for float32."""


def text(steps):
    return "".join(step.piece for step in steps)


def ids(steps):
    return [step.id for step in steps]


def say(*tokens, prompt="<start>", **kwargs):
    """What a chain model says after its first token."""
    lm = chain_language_model([prompt, *tokens])
    kwargs.setdefault("max_tokens", 20)
    return list(generate(lm, [ID[prompt]], GREEDY, **kwargs))


@pytest.fixture
def passes(monkeypatch):
    """The numbers of positions that went through the model, a pass after the other."""
    lengths = []

    def counted(ids, *rest):
        lengths.append(len(ids))
        return forward(ids, *rest)

    monkeypatch.setattr(model, "forward", counted)
    return lengths


# What ends a response.


def test_an_end_token_ends_the_response_and_adds_no_text():
    steps = say("a", "b", "<end>")
    assert [step.piece for step in steps] == ["a", "b", ""]
    assert [step.stop_reason for step in steps] == [None, None, "eos"]


def test_each_of_the_model_s_end_tokens_ends_it():
    """bugs C5 asks for a set of end ids: a chat ends with another token than a text."""
    assert say("a", "<stop>", "b")[-1].id == ID["<stop>"]


def test_max_tokens_ends_it():
    steps = say("a", "b", "c", "d", max_tokens=3)
    assert (text(steps), [step.stop_reason for step in steps]) == ("abc", [None, None, "length"])


def test_an_end_token_in_the_last_place_counts_as_the_end():
    assert say("a", "<end>", max_tokens=2)[-1].stop_reason == "eos"


def test_max_tokens_0_gives_no_step_and_computes_nothing(passes):
    assert say("a", max_tokens=0) == []
    assert passes == []


def test_a_stop_string_ends_it_across_tokens_and_is_no_part_of_the_text():
    steps = say("a", "b", "c", "d", stop=["bc"])
    assert (text(steps), len(steps), steps[-1].stop_reason) == ("a", 3, "stop")


def test_a_stop_string_may_begin_and_end_inside_tokens():
    steps = say("ab", "<stop>", stop=["b<st"], stop_ids=())
    assert (text(steps), len(steps), steps[-1].stop_reason) == ("a", 2, "stop")


def test_a_stop_string_in_the_last_place_counts_as_the_stop():
    assert say("a", "b", stop=["b"], max_tokens=2)[-1].stop_reason == "stop"


def test_text_held_back_for_a_stop_string_comes_out_at_the_end():
    steps = say("a", "b", "c", "<end>", stop=["bcd"])
    assert [step.piece for step in steps] == ["a", "", "", "bc"]
    assert [step.piece for step in say("a", "b", stop=["bcd"], max_tokens=2)] == ["a", "b"]


def test_a_character_of_three_tokens_comes_out_with_its_last_byte_or_as_a_replacement():
    assert [step.piece for step in say("a", "â", "Ĥ", "¬", "b", max_tokens=5)] == ["a", "", "", "€", "b"]
    assert [step.piece for step in say("a", "â", "Ĥ", "¬", max_tokens=3)] == ["a", "", "\N{REPLACEMENT CHARACTER}"]


def test_stop_ids_take_the_place_of_the_model_s_end_tokens():
    steps = say("a", "<end>", "b", "c", stop_ids={ID["b"]})
    assert (text(steps), steps[-1].stop_reason) == ("a<end>", "eos")


def test_without_stop_ids_nothing_but_length_ends_it():
    steps = say("a", "<end>", stop_ids=(), max_tokens=4)
    assert (text(steps), steps[-1].stop_reason) == ("a<end><start>a", "length")


@pytest.mark.parametrize("prompt_length", [1, 5, 7, 8])
def test_the_end_of_the_context_ends_it_with_the_one_token_that_needs_no_place(prompt_length):
    """bugs G13: a prompt of exactly the context is fine, and has one token after it."""
    lm = chain_language_model(["a", "b"], context=8)
    steps = list(generate(lm, [ID["a"]] * prompt_length, GREEDY, max_tokens=100))
    assert len(steps) == 8 - prompt_length + 1
    assert [step.stop_reason for step in steps] == [None] * (8 - prompt_length) + ["context"]


def test_of_length_and_context_at_once_it_is_length():
    lm = chain_language_model(["a", "b"], context=8)
    assert list(generate(lm, [ID["a"]] * 8, GREEDY, max_tokens=1))[-1].stop_reason == "length"


# What is refused, at once and by name.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prompt_ids": []}, "prompt_ids must hold at least one token, but is empty"),
        ({"prompt_ids": [1, 16]}, r"prompt_ids must hold integers in \[0, 16\), but has 16 at index 1"),
        ({"prompt_ids": [-1]}, r"prompt_ids must hold integers in \[0, 16\), but has -1 at index 0"),
        ({"prompt_ids": [1, True]}, r"prompt_ids must hold integers in \[0, 16\), but has True at index 1"),
        ({"prompt_ids": [1] * 65}, "prompt_ids must fit the context of 64 tokens, but has 65: shorten it"),
        ({"stop_ids": [2, 99]}, r"stop_ids must hold integers in \[0, 16\), but has 99"),
        ({"max_tokens": -1}, "max_tokens must be an integer of at least 0, but is -1"),
        ({"top_logprobs": -1}, "top_logprobs must be an integer of at least 0, but is -1"),
        ({"stop": [""]}, r"stop\[0\] must not be empty"),
        ({"stop": "ab"}, "stop must be a sequence of strings, got the string 'ab'"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_step(passes, arguments, message):
    """bugs G15: ranges are checked on every integer."""
    arguments = {"prompt_ids": [1], "max_tokens": 5, **arguments}
    with pytest.raises(ValueError, match=message):
        generate(random_language_model(), arguments.pop("prompt_ids"), GREEDY, **arguments)
    assert passes == []


def test_a_cache_without_room_is_refused_before_the_first_step():
    lm = random_language_model()
    cache = KVCache.empty(lm.config, capacity=9)
    with pytest.raises(ValueError, match=r"room for 10 positions, for the prompt and max_tokens=5, but has 9"):
        generate(lm, PROMPT, GREEDY, max_tokens=5, cache=cache)
    assert len(list(generate(lm, PROMPT, GREEDY, max_tokens=4, stop_ids=(), cache=cache))) == 4


@pytest.mark.parametrize("params", [GREEDY, SAMPLED])
def test_logits_that_are_nan_raise_in_their_step_and_leave_everything_usable(monkeypatch, params):
    lm, calls = random_language_model(), []
    cache = KVCache.empty(lm.config, capacity=30)

    def nan_at_the_third(hidden, weights):
        calls.append(hidden)
        return lm_head(hidden, weights) * (math.nan if len(calls) == 3 else 1)

    monkeypatch.setattr(generation, "lm_head", nan_at_the_third)
    steps = generate(lm, PROMPT, params, max_tokens=9, stop_ids=(), cache=cache)
    begun = [next(steps), next(steps)]
    with pytest.raises(ValueError, match="logits must be finite or -inf, got nan"):
        next(steps)
    again = list(generate(lm, PROMPT, params, max_tokens=9, stop_ids=(), cache=cache))
    fresh = list(generate(lm, PROMPT, params, max_tokens=9, stop_ids=()))
    assert ids(again) == ids(fresh)
    assert ids(begun) == ids(fresh)[:2]


def test_when_the_settings_leave_nothing_to_sample_the_step_says_so():
    steps = generate(random_language_model(), PROMPT, SamplingParams(banned_ids=tuple(range(16))), max_tokens=1)
    with pytest.raises(ValueError, match="nothing is left to sample"):
        next(steps)


# What a step reports.


def test_every_field_of_a_step_agrees_with_a_pass_that_knows_no_cache():
    """The reference computes every position anew, at every step."""
    lm, rng, output = random_language_model(), random.Random(SAMPLED.seed), []
    for step in generate(lm, PROMPT, SAMPLED, max_tokens=25, stop_ids=(), top_logprobs=4):
        sequence = torch.tensor(PROMPT + output)
        logits = lm_head(forward(sequence, lm.weights)[-1:], lm.weights)[0]
        probs, model = distribution(logits, SAMPLED, PROMPT, output), log_softmax(logits)
        low, high = step.bin
        assert step.position == len(PROMPT) + len(output)
        assert step.u == rng.random()
        assert step.id == draw(probs, step.u)
        assert low <= step.u < high
        assert high - low == pytest.approx(probs[step.id], abs=FLOAT32)
        assert step.margin == min(abs(step.u - edge) for edge in step.bin if 0 < edge < 1)
        assert step.n_candidates == np.count_nonzero(probs) == 9
        assert step.logprob == pytest.approx(math.log(probs[step.id]), abs=FLOAT32)
        assert step.model_logprob == pytest.approx(model[step.id], abs=FLOAT32)
        likeliest = (-model).argsort()[:4]
        assert [id for id, _ in step.top_logprobs] == likeliest.tolist()
        assert [logprob for _, logprob in step.top_logprobs] == pytest.approx(model[likeliest].tolist(), abs=FLOAT32)
        output.append(step.id)
    assert len(output) == 25


def test_the_log_probabilities_of_known_logits_are_known():
    """After "a" the table says 3, 2, 1 for b, c, d, and leaves out the rest."""
    table = torch.full((16, 16), -1e9)
    table[ID["a"], [ID["b"], ID["c"], ID["d"]]] = torch.tensor([3.0, 2.0, 1.0])
    params = SamplingParams(temperature=0.5, top_k=2, seed=0)
    (step,) = generate(bigram_language_model(table), [ID["a"]], params, max_tokens=1, top_logprobs=2)
    model = [
        3 - math.log(math.exp(3) + math.exp(2) + math.exp(1)),
        2 - math.log(math.exp(3) + math.exp(2) + math.exp(1)),
    ]
    drawn = [6 - math.log(math.exp(6) + math.exp(4)), 4 - math.log(math.exp(6) + math.exp(4))]
    choice = [ID["b"], ID["c"]].index(step.id)
    assert step.logprob == pytest.approx(drawn[choice])
    assert step.model_logprob == pytest.approx(model[choice])
    assert step.n_candidates == 2
    assert step.top_logprobs == ((ID["b"], pytest.approx(model[0])), (ID["c"], pytest.approx(model[1])))


def test_penalties_read_the_prompt_and_the_output_so_far():
    """A chain of a and b in turn: with repetition penalized hard, something else has to come."""
    lm = chain_language_model(["a", "b"])
    penalty = SamplingParams(temperature=0, presence_penalty=30.0)
    assert text(generate(lm, [ID["a"]], GREEDY, max_tokens=4)) == "baba"
    assert text(generate(lm, [ID["a"]], penalty, max_tokens=2)) == "ba"
    third = list(generate(lm, [ID["a"]], penalty, max_tokens=3, stop_ids=()))[2]
    assert third.id == ID["<end>"]  # all others are equal at 0, so the lowest id


@pytest.mark.parametrize("seed", range(12))
def test_joined_pieces_are_the_decoded_ids_without_the_end_token(seed):
    lm = random_language_model(seed)
    steps = list(generate(lm, [ID["<start>"]], SamplingParams(temperature=2.0, seed=seed), max_tokens=40))
    said = ids(steps)[:-1] if steps[-1].stop_reason == "eos" else ids(steps)
    assert text(steps) == lm.tokenizer.decode(said)
    assert all((step.stop_reason is None) == (step is not steps[-1]) for step in steps)


def test_the_same_seed_gives_the_same_steps_in_every_call():
    """bugs E15: a seed is used, starts anew with each call, and another one gives something else."""
    lm = random_language_model()

    def run(seed):
        return list(generate(lm, PROMPT, SamplingParams(temperature=2.0, seed=seed), max_tokens=30, stop_ids=()))

    assert run(5) == run(5)
    assert ids(run(5)) != ids(run(6))


def test_the_uniform_numbers_of_a_run_are_the_seed_s_stream_from_its_start():
    rng = random.Random(3)
    steps = generate(random_language_model(), PROMPT, SAMPLED, max_tokens=10, stop_ids=())
    assert [step.u for step in steps] == [rng.random() for _ in range(10)]


def test_a_tap_sees_every_pass_and_the_logits_and_recording_changes_nothing():
    lm, names = random_language_model(), []
    tapped = list(generate(lm, PROMPT, SAMPLED, max_tokens=3, stop_ids=(), tap=lambda name, value: names.append(name)))
    assert tapped == list(generate(lm, PROMPT, SAMPLED, max_tokens=3, stop_ids=()))
    assert names.count("logits") == names.count("blocks.1.resid_post") == names.count("embed") == 3
    assert names[-2:] == ["ln_final.normalized", "logits"]


def test_when_a_step_is_yielded_the_tap_has_last_seen_the_pass_it_came_out_of():
    lm, recorder = random_language_model(), Recorder("logits")
    for step in generate(lm, PROMPT, GREEDY, max_tokens=6, stop_ids=(), tap=recorder):
        assert recorder["logits"].argmax(-1).tolist() == [step.id]


def test_a_tap_can_change_what_is_chosen_from():
    def favour_d(name, value):
        return value + 1000 * torch.eye(16)[ID["d"]] if name == "logits" else None

    assert text(generate(random_language_model(), PROMPT, GREEDY, max_tokens=4, tap=favour_d)) == "dddd"


# What the cache saves, and that it never shows.


def test_the_prompt_goes_through_at_once_and_then_one_token_a_step(passes):
    list(generate(random_language_model(), PROMPT, GREEDY, max_tokens=5, stop_ids=()))
    assert passes == [6, 1, 1, 1, 1]


def test_the_last_token_of_a_response_never_goes_through_the_model():
    lm = random_language_model()
    cache = KVCache.empty(lm.config, capacity=30)
    steps = list(generate(lm, PROMPT, GREEDY, max_tokens=5, stop_ids=(), cache=cache))
    assert cache.ids == PROMPT + ids(steps)[:-1]


def test_a_kept_cache_computes_only_what_is_new(passes):
    lm = random_language_model()
    cache = KVCache.empty(lm.config, capacity=40)
    first = ids(generate(lm, PROMPT, GREEDY, max_tokens=5, stop_ids=(), cache=cache))
    longer = PROMPT + first + [3, 3, 9]
    passes.clear()
    kept = list(generate(lm, longer, SAMPLED, max_tokens=5, stop_ids=(), cache=cache))
    assert passes[0] == 1 + 3  # the last token of the first response, and the three new ones
    fresh = list(generate(lm, longer, SAMPLED, max_tokens=5, stop_ids=()))
    assert ids(kept) == ids(fresh)
    assert [s.logprob for s in kept] == pytest.approx([s.logprob for s in fresh], abs=FLOAT32)


def test_what_a_kept_cache_holds_of_another_text_is_dropped(passes):
    """bugs G13: the second call's answer doesn't depend on the first call's text."""
    lm = random_language_model()
    cache = KVCache.empty(lm.config, capacity=40)
    list(generate(lm, PROMPT, GREEDY, max_tokens=20, stop_ids=(), cache=cache))
    other = [*PROMPT[:4], 9, 9, 2]
    passes.clear()
    kept = list(generate(lm, other, GREEDY, max_tokens=20, stop_ids=(), cache=cache))
    assert passes[0] == 3
    fresh = list(generate(lm, other, GREEDY, max_tokens=20, stop_ids=()))
    assert ids(kept) == ids(fresh)
    assert [s.margin for s in kept] == pytest.approx([s.margin for s in fresh], abs=FLOAT32)


def test_asking_the_same_again_computes_the_last_position_alone(passes):
    lm = random_language_model()
    cache = KVCache.empty(lm.config, capacity=40)
    runs = [ids(generate(lm, PROMPT, GREEDY, max_tokens=5, stop_ids=(), cache=cache)) for _ in range(2)]
    assert runs[0] == runs[1]
    assert passes == [6, *[1] * 9]


def test_a_loop_abandoned_midway_leaves_model_and_cache_usable():
    lm = random_language_model()
    cache = KVCache.empty(lm.config, capacity=40)
    whole = list(generate(lm, PROMPT, SAMPLED, max_tokens=8, stop_ids=()))
    begun = generate(lm, PROMPT, SAMPLED, max_tokens=8, stop_ids=(), cache=cache)
    assert [next(begun), next(begun), next(begun)] == whole[:3]
    begun.close()
    assert cache.ids == PROMPT + ids(whole[:2])
    again = list(generate(lm, PROMPT, SAMPLED, max_tokens=8, stop_ids=(), cache=cache))
    assert ids(again) == ids(whole)


@pytest.mark.parametrize("chunk", [1, 2, 4, 5, 6, 7])
def test_prefill_in_chunks_gives_what_the_whole_gives(monkeypatch, passes, chunk):
    lm = random_language_model()
    whole = list(generate(lm, PROMPT, SAMPLED, max_tokens=6, stop_ids=()))
    passes.clear()
    monkeypatch.setattr(model, "PREFILL_CHUNK", chunk)
    parts = list(generate(lm, PROMPT, SAMPLED, max_tokens=6, stop_ids=()))
    assert (max(passes), sum(passes)) == (min(chunk, 6), 6 + 5)
    assert ids(parts) == ids(whole)
    assert [s.logprob for s in parts] == pytest.approx([s.logprob for s in whole], abs=FLOAT32)


def test_weights_in_training_leave_no_history_in_the_cache():
    lm = random_language_model()
    lm.weights.layers[0].self_attn.q_proj.requires_grad_()
    cache = KVCache.empty(lm.config, capacity=20)
    steps = generate(lm, PROMPT, GREEDY, max_tokens=3, cache=cache)
    next(steps)
    assert torch.is_grad_enabled()  # between two steps the caller may train
    list(steps)
    assert not cache.keys.requires_grad
    assert not cache.values.requires_grad


# The real model.


@pytest.mark.parametrize("case", GREEDY_VECTORS, ids=lambda case: case["id"])
def test_greedy_ids_and_text_are_the_stored_ones(lm, case):
    steps = list(generate(lm, case["prompt_ids"], GREEDY, max_tokens=48))
    assert ids(steps) == case["expected_ids"]
    assert text(steps) == case["text"]
    assert steps[-1].stop_reason == {"stop": "eos", "length": "length"}[case["finish"]]
    assert min(step.margin for step in steps) == pytest.approx(case["min_top1_top2_margin"], abs=CACHED)


@pytest.mark.parametrize(
    ("question", "answer", "probabilities"),
    [
        (
            "What is the capital of Australia?",
            "The capital of Australia is Canberra.",
            [0.81, 0.98, 0.88, 0.97, 0.96, 0.65, 0.51, 0.77],
        ),
        ("How many r's are in strawberry?", "The answer is 1.", None),
        ("What is 17 + 25?", "17 + 25 = 32.", None),
    ],
)
def test_the_real_model_answers_as_the_book_tells(lm, question, answer, probabilities):
    prompt_ids = encode_chat(lm.tokenizer, [{"role": "user", "content": question}])
    steps = list(generate(lm, prompt_ids, GREEDY, max_tokens=30))
    assert (text(steps), steps[-1].stop_reason) == (answer, "eos")
    if probabilities:
        assert [math.exp(step.model_logprob) for step in steps] == pytest.approx(probabilities, abs=TWO_DECIMALS)


def test_a_second_turn_of_chat_computes_only_the_new_tokens(lm, passes):
    chat = [{"role": "user", "content": "What is the capital of Australia?"}]
    first_prompt = encode_chat(lm.tokenizer, chat)
    cache = KVCache.empty(lm.config, capacity=200)
    answer = list(generate(lm, first_prompt, GREEDY, max_tokens=30, cache=cache))
    chat += [{"role": "assistant", "content": text(answer)}, {"role": "user", "content": "And of France?"}]
    second_prompt = encode_chat(lm.tokenizer, chat)
    held = len(cache.ids)
    assert cache.ids == second_prompt[:held]
    passes.clear()
    kept = list(generate(lm, second_prompt, GREEDY, max_tokens=12, cache=cache))
    assert passes[0] == len(second_prompt) - held < len(second_prompt) / 3
    fresh = list(generate(lm, second_prompt, GREEDY, max_tokens=12))
    assert ids(kept) == ids(fresh)
    assert [s.model_logprob for s in kept] == pytest.approx([s.model_logprob for s in fresh], abs=CACHED)


def test_the_tiny_vocabulary_has_what_these_tests_walk_through():
    assert len(TOKENS) == len(set(TOKENS)) == 16
    assert "".join(TOKENS[8:11]).translate({ord("Ĥ"): "\x82"}).encode("latin-1").decode() == "€"
