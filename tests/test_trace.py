"""A recorded response: true to the loop, small, equal after saving and loading, and strict about files."""

import copy
import errno
import json
import math
import os
import threading
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_internals.chat import encode_chat, render_chat
from llm_internals.checkpoint import LanguageModel
from llm_internals.generate import Step, generate
from llm_internals.logits import lm_head, logit_lens
from llm_internals.model import forward
from llm_internals.sampling import SamplingParams, account, softmax
from llm_internals.tap import Recorder
from llm_internals.trace import WEIGHT_ERROR, AttentionMap, Trace, TraceError, trace
from llm_internals.trace.atomic_write import write_text
from llm_internals.trace.checked_json import parse_json
from llm_internals.trace.recording import BINS, TOP_LENS, TOP_LOGITS, TOP_SURVIVORS, significant
from tests.tiny_model import ID, chain_language_model, random_language_model

PROMPT = "The capital of Australia is"
PARAMS = SamplingParams(temperature=0.7, top_p=0.9, seed=7)
ROUNDED_LOGIT = 6e-4
"""Logits are recorded with 3 decimals."""
ROUNDED_PROB = 6e-4
"""Probabilities and norms are recorded with 4 or 5 digits, relative to their size."""
FLOAT32 = 1e-4
"""How far two float32 passes over the same tokens, one in chunks and one with a cache, may differ."""


@pytest.fixture(scope="module")
def recorded(lm: LanguageModel) -> Trace:
    return trace(lm, PROMPT, PARAMS, max_tokens=5)


@pytest.fixture(scope="module")
def first_pass(lm: LanguageModel) -> Recorder:
    """What an ordinary tap sees in a pass over the prompt."""
    recorder = Recorder()
    hidden = forward(torch.tensor(lm.tokenizer.encode(PROMPT)), lm.weights, tap=recorder)
    recorder.tensors["logits"] = lm_head(hidden[-1:], lm.weights)
    return recorder


def plain(step: Step) -> Step:
    """A traced step without what the trace adds."""
    return Step(**{field.name: getattr(step, field.name) for field in fields(Step)})


def tiny_trace(params: SamplingParams = PARAMS, max_tokens: int = 4, **options: Any) -> Trace:
    return trace(random_language_model(), "abc de.", params, max_tokens=max_tokens, **options)


# Recording is looking


def test_the_steps_are_those_of_generate_bit_for_bit(lm: LanguageModel, recorded: Trace) -> None:
    steps = generate(lm, lm.tokenizer.encode(PROMPT), PARAMS, max_tokens=5)
    assert [plain(step) for step in recorded.steps] == list(steps)


SETTINGS = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.0, 0.3, 1.0, 2.0]),
        "top_k": st.integers(0, 16),
        "top_p": st.floats(0, 1),
        "min_p": st.sampled_from([0.0, 0.1, 1.0]),
        "typical_p": st.sampled_from([0.5, 1.0]),
        "repetition_penalty": st.sampled_from([0.5, 1.0, 1.7]),
        "presence_penalty": st.sampled_from([0.0, 0.5]),
        "frequency_penalty": st.sampled_from([-1.0, 0.0, 0.7]),
        "no_repeat_ngram_size": st.sampled_from([0, 3]),
        "logit_bias": st.none() | st.dictionaries(st.integers(0, 15), st.floats(-5, 5), max_size=3),
        "banned_ids": st.lists(st.integers(0, 15), max_size=3).map(tuple),
        "seed": st.integers(0, 2**40),
    }
)


@given(SETTINGS, st.integers(0, 6), st.sampled_from([(), ("b",), ("a.", "e")]))
def test_recording_changes_no_output_whatever_the_settings(
    values: dict[str, Any], max_tokens: int, stop: tuple
) -> None:
    lm, params = random_language_model(), SamplingParams(**values)
    made = trace(lm, "abc de.", params, max_tokens=max_tokens, stop=stop)
    steps = list(generate(lm, lm.tokenizer.encode("abc de."), params, max_tokens=max_tokens, stop=stop))
    assert [plain(step) for step in made.steps] == steps
    assert made.text == "".join(step.piece for step in steps)


def test_a_prompt_longer_than_a_prefill_chunk_is_recorded_at_its_last_position(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tiny_trace()
    monkeypatch.setattr("llm_internals.model.PREFILL_CHUNK", 3)
    chunked = tiny_trace()
    assert chunked.steps[0].attention.kv_seq == whole.steps[0].attention.kv_seq == len(whole.prompt_ids)
    np.testing.assert_allclose(chunked.steps[0].residual_norms, whole.steps[0].residual_norms, rtol=FLOAT32)


def test_each_step_is_handed_out_as_soon_as_it_is_there() -> None:
    seen: list[Step] = []
    made = tiny_trace(on_step=seen.append)
    assert tuple(seen) == made.steps
    assert len(seen) == 4


# What is recorded


def test_the_prompt_is_recorded_as_text_ids_and_pieces(lm: LanguageModel, recorded: Trace) -> None:
    assert recorded.prompt == PROMPT
    assert list(recorded.prompt_ids) == lm.tokenizer.encode(PROMPT)
    assert b"".join(recorded.tokens[id] for id in recorded.prompt_ids).decode() == PROMPT
    assert (recorded.params, recorded.max_tokens, recorded.config) == (PARAMS, 5, lm.config)


def test_messages_are_recorded_as_their_template_renders_them(lm: LanguageModel) -> None:
    messages = [{"role": "user", "content": "Hi <|im_end|>"}]
    made = trace(lm, messages, PARAMS, max_tokens=1)
    assert made.prompt == render_chat(messages)
    assert list(made.prompt_ids) == encode_chat(lm.tokenizer, messages)
    assert made.special_ids >= {1, 2}
    assert lm.tokenizer.encode("is")[0] not in made.special_ids


def test_norms_are_those_of_the_vectors_in_the_pass(recorded: Trace, first_pass: Recorder) -> None:
    step, last = recorded.steps[0], len(recorded.prompt_ids) - 1
    stream = [first_pass["embed"], *(first_pass[f"blocks.{layer}.resid_post"] for layer in range(30))]
    for norms, tensors in (
        (step.residual_norms, stream),
        (step.attn_out_norms, [first_pass[f"blocks.{layer}.attn_out"] for layer in range(30)]),
        (step.mlp_out_norms, [first_pass[f"blocks.{layer}.mlp_out"] for layer in range(30)]),
    ):
        np.testing.assert_allclose(norms, [float(tensor[last].norm()) for tensor in tensors], rtol=ROUNDED_PROB)


def test_attention_is_within_half_a_level_of_the_computed_one(recorded: Trace, first_pass: Recorder) -> None:
    computed = np.stack([first_pass[f"blocks.{layer}.attn.pattern"][:, -1].numpy() for layer in range(30)])
    kept = recorded.steps[0].attention.weights()
    assert kept.shape == computed.shape == (30, 9, 5)
    assert np.abs(kept - computed).max() <= WEIGHT_ERROR + 1e-6


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 3), st.integers(1, 40))
def test_any_attention_keeps_the_bound(seed: int, layers: int, heads: int, kv_seq: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.full(kv_seq, 0.2), (layers, heads)).astype(np.float32)
    kept = AttentionMap.of(weights)
    assert np.abs(kept.weights() - weights).max() <= WEIGHT_ERROR + 1e-7
    assert kept.levels().dtype == np.uint8


def test_the_logit_lens_ends_at_what_the_model_says(recorded: Trace, first_pass: Recorder, lm: LanguageModel) -> None:
    step = recorded.steps[0]
    assert len(step.lens) == 31
    assert step.lens[-1].prob == pytest.approx(math.exp(step.model_logprob), rel=ROUNDED_PROB)
    ranked = [id for id, _ in step.top_logits]
    assert [id for id, _ in step.lens[-1].top] == ranked[:TOP_LENS]
    assert step.lens[-1].rank == ranked.index(step.id) + 1
    assert step.lens[0].top[0][0] == recorded.prompt_ids[-1], (
        "the embedding says the token itself: the matrices are tied"
    )


def test_the_logit_lens_of_a_middle_layer_agrees_with_the_stage(
    recorded: Trace, first_pass: Recorder, lm: LanguageModel
) -> None:
    logits = logit_lens(first_pass["blocks.20.resid_post"][-1:], lm.weights)[0]
    probs = softmax(logits)
    layer = recorded.steps[0].lens[21]
    for id, prob in layer.top:
        assert prob == pytest.approx(probs[id], rel=1e-3)
    assert layer.rank == 1 + int((logits > logits[recorded.steps[0].id]).sum())


def test_scores_and_their_normalizer_give_the_models_probabilities(recorded: Trace, first_pass: Recorder) -> None:
    step, logits = recorded.steps[0], first_pass["logits"][0].double().numpy()
    assert len(step.top_logits) == TOP_LOGITS
    assert [id for id, _ in step.top_logits] == np.argsort(-logits, kind="stable")[:TOP_LOGITS].tolist()
    for id, logit in step.top_logits:
        assert logit == pytest.approx(logits[id], abs=ROUNDED_LOGIT)
        assert math.exp(logit - step.log_normalizer) == pytest.approx(softmax(logits)[id], rel=2 * ROUNDED_LOGIT)


def test_the_survivors_of_each_operator_are_those_of_account(recorded: Trace, first_pass: Recorder) -> None:
    step = recorded.steps[0]
    for kept, record in zip(step.operators, account(first_pass["logits"][0], PARAMS, recorded.prompt_ids), strict=True):
        assert (kept.name, kept.setting, kept.active) == (record.name, record.setting, record.active)
        assert (kept.before, kept.after) == (len(record.candidates), len(record.kept))
        assert kept.removed_mass == pytest.approx(record.removed_mass, rel=ROUNDED_PROB, abs=1e-9)
        assert len(kept.top) == (min(TOP_SURVIVORS, kept.after) if kept.active else 0)
        for id, prob in kept.top:
            assert prob == pytest.approx(record.after[id], rel=ROUNDED_PROB)
    assert step.operators[-1].after == step.n_candidates


def test_operators_see_the_tokens_that_were_generated_before() -> None:
    params = SamplingParams(presence_penalty=30.0, seed=1)
    made = trace(random_language_model(), "abc", params, max_tokens=6, stop=())
    ids = [step.id for step in made.steps]
    assert len(set(ids)) == len(ids) > 1, "so large a penalty lets no token come twice"
    last = next(operator for operator in made.steps[-1].operators if operator.name == "presence_penalty")
    assert not {id for id, _ in last.top} & set(ids[:-1])


def test_the_number_lies_in_the_recorded_bin_of_its_token(recorded: Trace) -> None:
    for step in recorded.steps:
        edges = {id: (low, high) for id, low, high in step.bins}
        assert edges[step.id] == pytest.approx(step.bin, abs=1e-6)
        assert step.bin[0] <= step.u < step.bin[1]
        assert len(step.bins) == min(BINS, step.n_candidates)
        assert [id for id, _, _ in step.bins] == sorted(edges)


def test_greedy_choices_have_no_number_and_no_bins() -> None:
    made = tiny_trace(SamplingParams(temperature=0))
    assert {(step.u, step.bins, step.n_candidates) for step in made.steps} == {(None, (), 1)}
    assert made.steps[0].operators[-1].name == "temperature", "temperature 0 acts last wherever it stands"


def test_an_end_token_and_a_stop_string_are_recorded_as_reasons() -> None:
    lm = chain_language_model(["a", "b", "c", "<end>"])
    greedy = SamplingParams(temperature=0)
    ended = trace(lm, "a", greedy, max_tokens=9)
    assert (ended.text, ended.stop_reason, ended.steps[-1].id) == ("bc", "eos", ID["<end>"])
    stopped = trace(lm, "a", greedy, max_tokens=9, stop=["c"])
    assert (stopped.text, stopped.stop_reason, stopped.stop) == ("b", "stop", ("c",))


def test_a_token_that_is_part_of_a_character_keeps_its_bytes(tmp_path: Path) -> None:
    made = trace(chain_language_model(["a", "â", "Ĥ", "¬"]), "a", SamplingParams(temperature=0), max_tokens=3)
    assert [step.piece for step in made.steps] == ["", "", "€"]
    assert made.tokens[ID["â"]] == b"\xe2"
    made.save(tmp_path / "euro.json")
    assert Trace.load(tmp_path / "euro.json").tokens[ID["Ĥ"]] == b"\x82"


def test_no_step_is_asked_for_and_none_is_recorded() -> None:
    made = tiny_trace(max_tokens=0)
    assert (made.steps, made.text, made.stop_reason) == ((), "", None)
    with pytest.raises(ValueError, match="at least one step"):
        made.to_html()


@pytest.mark.parametrize("prompt", [7, b"bytes", None])
def test_a_prompt_of_another_type_is_refused_by_name(prompt: Any) -> None:
    with pytest.raises(TypeError, match="prompt"):
        trace(random_language_model(), prompt, PARAMS, max_tokens=1)


def test_digits_that_count_are_kept() -> None:
    assert significant(123456.0, 3) == 123000.0
    assert significant(0.0, 4) == 0.0


# Files


def test_a_saved_response_is_small(recorded: Trace, tmp_path: Path) -> None:
    recorded.save(tmp_path / "trace.json")
    assert (tmp_path / "trace.json").stat().st_size < 10_000 * len(recorded.steps)


def test_what_is_loaded_equals_what_was_saved(recorded: Trace, tmp_path: Path) -> None:
    recorded.save(tmp_path / "trace.json")
    loaded = Trace.load(tmp_path / "trace.json")
    assert loaded == recorded
    np.testing.assert_array_equal(loaded.steps[3].attention.levels(), recorded.steps[3].attention.levels())


@given(SETTINGS, st.integers(0, 3))
def test_any_response_survives_json(values: dict[str, Any], max_tokens: int) -> None:
    made = tiny_trace(SamplingParams(**values), max_tokens)
    text = json.dumps(made.to_json(), allow_nan=False, ensure_ascii=False)
    assert Trace.from_json(parse_json(text)) == made


def test_a_margin_without_rivals_survives_json() -> None:
    made = tiny_trace(SamplingParams(temperature=0, top_k=1))
    assert made.steps[0].margin == math.inf
    assert Trace.from_json(parse_json(json.dumps(made.to_json(), allow_nan=False))) == made


def test_a_missing_folder_is_named(recorded: Trace, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"can't write the file.*nowhere"):
        recorded.save(tmp_path / "nowhere" / "trace.json")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.json"
    write_text(path, "old")

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match=r"No space left on device.*trace\.json"):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_cannot_be_written_over(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="can't write the file"):
        write_text(tmp_path, "text")


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    write_text(target, "old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_text(pipe, "through")
    reader.join(timeout=10)
    assert got == ["through"]
    assert pipe.is_fifo()


# Files from elsewhere


@pytest.fixture(scope="module")
def good() -> dict[str, Any]:
    """A small trace as JSON has it, to be spoilt."""
    params = SamplingParams(temperature=0.8, top_k=9, logit_bias={3: 1.5}, banned_ids=(1,), seed=5)
    return tiny_trace(params, max_tokens=3).to_json()


def load(data: Any) -> Trace:
    return Trace.from_json(parse_json(json.dumps(data)))


def paths(value: Any, at: tuple = ()) -> Iterator[tuple]:
    """Every place in a JSON value, as the keys and indices that lead there; of a list, whose entries are alike, one."""
    yield at
    entries = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from paths(entry, (*at, key))


def spoilt(data: Any, at: tuple, change: Callable[[Any, Any], None]) -> Any:
    """A copy with a change at one place: ``change`` gets the container and the last key."""
    data = copy.deepcopy(data)
    container = data
    for key in at[:-1]:
        container = container[key]
    change(container, at[-1])
    return data


def test_every_key_is_needed_and_named_when_it_is_missing(good: dict[str, Any]) -> None:
    for at in paths(good):
        if at and isinstance(at[-1], str) and not (set(at[:-1]) & {"tokens", "logit_bias"}):
            with pytest.raises(TraceError, match=at[-1]):
                load(spoilt(good, at, lambda container, key: container.pop(key)))


def test_a_key_that_is_not_part_of_a_trace_is_named(good: dict[str, Any]) -> None:
    for at in [(), ("params",), ("config",), ("steps", 0), ("steps", 0, "lens", 0), ("steps", 1, "operators", 2)]:
        with pytest.raises(TraceError, match=r"surprise(?:\x20|$)"):
            load(spoilt(good, (*at, "surprise"), lambda container, key: container.update({key: 1})))


WRONG = [None, True, -1, 10**400, 1.5, 1e300, "x", [], {}, "\ud800"]


def test_no_wrong_value_anywhere_gives_another_error_than_trace_error(good: dict[str, Any]) -> None:
    """At each place a third of the wrong values, by turns: every kind of place meets all of them."""
    for turn, at in enumerate(paths(good)):
        for value in WRONG[turn % 3 :: 3] if at else ():
            data = spoilt(good, at, lambda container, key, value=value: container.__setitem__(key, value))
            try:
                loaded = load(data)
            except TraceError:
                continue
            again = json.loads(json.dumps(loaded.to_json()))
            assert again == json.loads(json.dumps(data)), f"{value!r} at {at} was read as something else"


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (("format",), "something", 'format must be "llm_internals.trace"'),
        (("version",), 2, "version must be 1, the only one that this program reads, but is 2"),
        (("version",), True, "version must be 1"),
        (("steps", 1, "u"), 1.5, r"steps\[1\]\.u must be a finite number in \[.*\], but is 1\.5"),
        (("steps", 1, "u"), None, r"steps\[1\]\.u must be a finite number"),
        (("steps", 0, "id"), 16, r"steps\[0\]\.id must be an integer in \[0, 15\], but is 16"),
        (("steps", 0, "position"), 3, r"steps\[0\]\.position must be an integer in \[6, 6\]"),
        (("steps", 0, "stop_reason"), "length", r"steps\[0\]\.stop_reason must be set on the last step"),
        (("steps", 2, "stop_reason"), None, r"steps\[2\]\.stop_reason must be set on the last step"),
        (("steps", 2, "stop_reason"), "bored", r"steps\[2\]\.stop_reason must be one of null, \"eos\""),
        (("steps", 0, "lens", 1, "rank"), 0, r"steps\[0\]\.lens\[1\]\.rank must be an integer in \[1, 16\]"),
        (("steps", 0, "residual_norms"), [1.0], r"steps\[0\]\.residual_norms must have 3 entries, but has 1"),
        (("steps", 0, "top_logits"), [[1, 0.0], [2, 1.0]], "largest number first"),
        (("steps", 0, "operators", 3, "name"), "logit_bias", "each operator once"),
        (("steps", 0, "operators", 6, "before"), 16, "must get the 15 tokens left"),
        (("steps", 0, "bins"), [[1, 0.5, 0.7], [2, 0.1, 0.2]], r"bins\[1\]\[1\] must be a finite number in \[0\.7"),
        (("steps", 0, "attention"), "AAAA", "must be zlib data in base64"),
        (("steps", 0, "attention"), "é", "must be zlib data in base64"),
        (("prompt_ids",), [], "prompt_ids must be a list of at least one token"),
        (("max_tokens",), 2, "max_tokens must be an integer of at least 3"),
        (("params", "top_p"), 1.5, r"params: top_p must be a number in \[0, 1\]"),
        (("params", "logit_bias"), {"03": 1.0}, r"params\.logit_bias\.03 must have a token id as its key"),
        (("params", "order"), ["top_k"], "params: order must name each of"),
        (("config", "head_dim"), 7, "config: head_dim must be even"),
        (("tokens",), {}, "tokens must have every token that the trace mentions"),
        (("tokens", "3"), [256], r"tokens\.3\[0\] must be an integer in \[0, 255\]"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(good: dict[str, Any], at: tuple, value: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        load(spoilt(good, at, lambda container, key: container.__setitem__(key, value)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold JSON"),
        ("{", "must hold JSON"),
        ("[" * 200_000, "must hold JSON"),
        ("9" * 5000, "must hold JSON"),
        ("[]", "the file must be an object"),
        ('{"a": NaN}', "numbers must be finite, but the file holds NaN"),
        ('{"a": -Infinity}', "numbers must be finite"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ("{}", 'format is missing: a trace says "format"'),
        ('{"format": "llm_internals.trace"}', "version is missing"),
    ],
)
def test_what_is_no_json_object_is_refused(text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        Trace.from_json(parse_json(text))


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(good: dict[str, Any]) -> None:
    bomb = b64encode(zlib.compress(bytes(10_000_000))).decode()
    with pytest.raises(TraceError, match=r"steps\[0\]\.attention must unpack to 72 bytes"):
        load(spoilt(good, ("steps", 0, "attention"), lambda container, key: container.__setitem__(key, bomb)))
    data = copy.deepcopy(good)
    data["config"] |= {"num_attention_heads": 2**26, "num_key_value_heads": 1}
    with pytest.raises(TraceError, match="at most 134217728 weights"):
        load(data)


def test_bytes_that_are_no_text_and_a_file_that_is_too_long_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"format": "\xff"}')
    with pytest.raises(TraceError, match="must be JSON in UTF-8, but invalid start byte at byte 12"):
        Trace.load(path)
    monkeypatch.setattr("llm_internals.trace.response.MAX_FILE_BYTES", 10)
    with pytest.raises(TraceError, match="at most 10 bytes long, but has 15"):
        Trace.load(path)
    with pytest.raises(FileNotFoundError, match=r"nothing\.json"):
        Trace.load(tmp_path / "nothing.json")


@settings(max_examples=150)
@given(st.data())
def test_a_file_with_a_changed_character_loads_or_raises_trace_error(good: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(good)
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.characters(codec="utf-8")) + text[place + 1 :]
    with suppress(TraceError):
        assert isinstance(Trace.from_json(parse_json(changed)), Trace)


def test_a_trace_is_loaded_and_shown_without_a_model(
    recorded: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.save(tmp_path / "trace.json")
    monkeypatch.setattr("torch.Tensor.__matmul__", None)
    monkeypatch.setattr("llm_internals.checkpoint.load_checkpoint", None)
    assert "Sydney" in Trace.load(tmp_path / "trace.json").to_html()


def test_a_trace_is_frozen(recorded: Trace) -> None:
    with pytest.raises(AttributeError):
        recorded.prompt = "another"
    assert replace(recorded, max_tokens=9) != recorded
