"""The data of the sampling explorer: small, complete, and true to the model."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals import sampling
from llm_internals.checkpoint import LanguageModel
from llm_internals.figures.sampling_explorer import HEAD, STEP, explorer_entry, explorer_logits
from llm_internals.sampling import SamplingParams
from tools import book_data

STORED = Path(__file__).parent.parent / "book" / "data" / "sampling_explorer.json"
TEMPERATURES = [0.05, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0]
PROBABILITY, ENTROPY, SURVIVORS = 1e-3, 1e-2, 1e-3
"""What the page promises: absolute for sums of probabilities and for nats, relative for the number of tokens kept."""


@pytest.fixture(scope="module")
def stored() -> list[dict]:
    """What the page reads."""
    return json.loads(STORED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def exact(lm: LanguageModel) -> list[np.ndarray]:
    """The model's own logits after each prompt, in descending order."""
    return [np.sort(scores)[::-1] for scores in book_data.explorer_scores(lm)]


def entropy(probs: np.ndarray) -> float:
    """In nats."""
    return float(-(probs[probs > 0] * np.log(probs[probs > 0])).sum())


# The form


@given(st.lists(st.floats(-40, 40), min_size=1, max_size=40), st.integers(0, 2000))
def test_every_logit_is_carried_and_comes_back_in_order_within_its_rounding(few: list[float], more: int) -> None:
    logits = np.concatenate([few, np.linspace(-30, 30, more)])
    carried = explorer_logits(explorer_entry("x", logits, []))
    off = np.abs(carried - np.sort(logits)[::-1])
    assert carried.size == logits.size
    assert all(one >= other for one, other in pairwise(carried.tolist()))
    assert off[:HEAD].max() <= 1e-4
    assert off[HEAD:].max(initial=0) <= STEP


def test_an_entry_is_plain_json_with_visible_tokens() -> None:
    entry = explorer_entry("x", np.array([0.5, 2.0]), [" a", b"\xf0\x9f"])
    assert json.loads(json.dumps(entry)) == entry
    assert (entry["head"], entry["tokens"]) == ([2.0, 0.5], ["␣a", "\\xf0\\x9f"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        explorer_entry("x", np.array([0.0, bad]), [])


# The stored file


def test_the_stored_logits_are_those_of_the_model(lm: LanguageModel, stored: list[dict]) -> None:
    assert book_data.same_logits(stored, book_data.explorer_entries(lm))
    assert [explorer_logits(entry).size for entry in stored] == [lm.config.vocab_size] * len(stored)


def test_the_file_stays_small_enough_for_a_page() -> None:
    assert STORED.stat().st_size < 60_000


@pytest.mark.parametrize("t", TEMPERATURES)
def test_sums_over_the_vocabulary_are_those_of_the_exact_logits(
    t: float, stored: list[dict], exact: list[np.ndarray]
) -> None:
    for entry, logits in zip(stored, exact, strict=True):
        ours, theirs = (sampling.softmax(scores / t) for scores in (explorer_logits(entry), logits))
        assert np.abs(np.cumsum(ours) - np.cumsum(theirs)).max() < PROBABILITY
        assert abs(entropy(ours) - entropy(theirs)) < ENTROPY


@pytest.mark.parametrize("t", TEMPERATURES)
@pytest.mark.parametrize("p", [0.5, 0.9, 0.95])
def test_top_p_keeps_as_many_of_them(t: float, p: float, stored: list[dict], exact: list[np.ndarray]) -> None:
    params = SamplingParams(temperature=t, top_p=p)
    for entry, logits in zip(stored, exact, strict=True):
        kept = [np.count_nonzero(sampling.distribution(scores, params)) for scores in (explorer_logits(entry), logits)]
        assert abs(kept[0] - kept[1]) <= SURVIVORS * kept[1]


# Bringing it up to date


def test_a_stored_file_is_left_alone_while_it_agrees(stored: list[dict]) -> None:
    nudged = [entry | {"head": [logit + 1e-4 for logit in entry["head"]]} for entry in stored]
    moved = [entry | {"head": [logit + 1e-2 for logit in entry["head"]]} for entry in stored]
    renamed = [entry | {"name": "other"} for entry in stored]
    shorter = [entry | {"counts": entry["counts"][:-1]} for entry in stored]
    assert book_data.same_logits(stored, nudged)
    assert not any(book_data.same_logits(stored, changed) for changed in (moved, renamed, shorter, stored[1:]))


def test_only_a_file_that_disagrees_is_written(
    lm: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = book_data.DataFile(lambda lm: {"vocab": lm.config.vocab_size}, lambda old, new: old == new)
    monkeypatch.setattr(book_data, "FOLDER", tmp_path / "data")
    monkeypatch.setattr(book_data, "FILES", {"x.json": file})
    monkeypatch.setattr(book_data, "load_checkpoint", lambda: lm)
    for _ in range(2):
        book_data.main()
    assert capsys.readouterr().out == "x.json: written\nx.json: unchanged\n"
    assert (tmp_path / "data" / "x.json").read_text(encoding="utf-8") == '{"vocab":49152}\n'
