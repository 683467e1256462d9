"""The data of the temperature explorer: complete, small, and true to the model."""

import copy
import json

import numpy as np
import pytest

from llm_internals.checkpoint import LanguageModel
from llm_internals.figures.temperature_explorer import TEMPERATURES, explorer_data, explorer_question
from llm_internals.sampling import SamplingParams, distribution
from tools import book_data, temperature_explorer_data

STORED = json.loads((temperature_explorer_data.FOLDER / "temperature_explorer.json").read_text(encoding="utf-8"))
FILE = json.loads((temperature_explorer_data.FOLDER / "questions.json").read_text(encoding="utf-8"))
DIGIT = 5.001e-5
"""Half of the last of four digits."""
CURVES = np.tile(np.linspace(1, 0.2, len(TEMPERATURES))[:, None], 2)


# The form


def test_an_entry_is_plain_json_with_visible_tokens_and_a_row_a_token() -> None:
    entry = explorer_question("x", [" a", b"\xf0"], 1, 2, CURVES)
    assert json.loads(json.dumps(entry)) == entry
    assert (entry["tokens"], entry["right"], entry["place"]) == (["␣a", "\\xf0"], 1, 2)
    assert [len(row) for row in entry["probs"]] == [len(TEMPERATURES)] * 2
    assert entry["probs"][0] == pytest.approx(CURVES[:, 0], abs=DIGIT)


def test_probabilities_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"probs must have the shape \(41, 1\), but has \(41, 2\)"):
        explorer_question("x", [" a"], 0, 1, CURVES)


def test_the_slider_goes_from_greedy_to_two_and_stops_at_the_model_s_own_temperature() -> None:
    data = explorer_data([], CURVES[:, 0], CURVES[:, 1], greedy=1, asked=2)
    assert (data["temperatures"][0], data["temperatures"][-1]) == (0.0, 2.0)
    assert {0.2, 0.7, 1.0} <= set(data["temperatures"])


# The stored file


def test_it_stays_small_enough_for_a_page() -> None:
    assert (temperature_explorer_data.FOLDER / "temperature_explorer.json").stat().st_size < 40_000


def test_book_data_writes_it() -> None:
    file = book_data.FILES["temperature_explorer.json"]
    assert file.build is temperature_explorer_data.temperature_explorer
    assert file.agrees is temperature_explorer_data.same_probabilities


def test_it_has_questions_of_all_three_kinds_and_no_token_beats_the_first() -> None:
    places = [entry["place"] for entry in STORED["questions"]]
    assert min(places.count(1), places.count(2), sum(place > 2 for place in places)) >= 3
    for entry in STORED["questions"]:
        probs = np.array(entry["probs"])
        assert (probs[0] >= probs.max(axis=0)).all()
        assert probs[:, 0].tolist() == [1.0, *[0.0] * (len(probs) - 1)]
        assert (entry["right"] == 0) == (entry["place"] == 1)


def test_the_questions_are_those_of_the_book() -> None:
    answers = {question["prompt"]: question["answer"] for question in FILE["questions"]}
    for entry in STORED["questions"]:
        first = entry["tokens"][entry["right"]].replace("␣", " ")
        assert answers[entry["prompt"]].startswith(first)
    assert STORED["all"]["asked"] == len(FILE["questions"])


def test_a_question_s_probabilities_are_those_that_sampling_gives_now(lm: LanguageModel) -> None:
    """Three of them; the chapter compares the others, and the means, each time that it runs."""
    prompts = ("The capital of Turkey is", "A young goose is called a", "2 + 7 = ")
    few = FILE | {"questions": [question for question in FILE["questions"] if question["prompt"] in prompts]}
    logits, ids = temperature_explorer_data.first_token_logits(lm, few)
    for question, row, id in zip(few["questions"], logits, ids.tolist(), strict=True):
        [entry] = [entry for entry in STORED["questions"] if entry["prompt"] == question["prompt"]]
        made = temperature_explorer_data.question(lm, question["prompt"], row, id)
        assert {**made, "probs": []} == {**entry, "probs": []}
        off = np.abs(np.subtract(made["probs"], entry["probs"]))
        assert off.max() <= temperature_explorer_data.NOISE
        drawn = [distribution(row, SamplingParams(temperature=t))[id] for t in TEMPERATURES]
        assert made["probs"][made["right"]] == pytest.approx(drawn, abs=DIGIT)


# Bringing it up to date


def test_a_stored_file_is_left_alone_while_it_agrees() -> None:
    def changed(change) -> dict:
        other = copy.deepcopy(STORED)
        change(other)
        return other

    agrees = temperature_explorer_data.same_probabilities
    nudged = changed(lambda data: data["all"]["sampled"].__setitem__(7, data["all"]["sampled"][7] + 1e-4))
    moved = changed(lambda data: data["all"]["sampled"].__setitem__(7, data["all"]["sampled"][7] + 1e-3))
    renamed = changed(lambda data: data["questions"][0].__setitem__("prompt", "other"))
    shorter = changed(lambda data: data["questions"].pop())
    assert agrees(STORED, nudged)
    assert not any(agrees(STORED, other) for other in (moved, renamed, shorter))
