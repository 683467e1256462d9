"""``book/data/vote.json``: what the model said to sums; a part of it is asked again."""

import json

import pytest

from tools import vote_data

DATA = json.loads(vote_data.PATH.read_text(encoding="utf-8"))
SURE = 1e-3
"""A draw this far from another token's bin, or a lead this large, falls the same way on every CPU.

Logits differ by 1e-4 between CPUs, which moves an edge by 1e-4 at most, and by more after a temperature of .7.
"""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4 + 5 = 9", 9),
        ("4+5=9", 9),
        ("The answer is 9", 9),
        ("9", 9),
        ("The sum of 4 and 5 is 4 plus 5, that is 9", 9),
        ("That's a puzzle", None),
        ("", None),
        ("14 + 5 = 19", 14),
    ],
)
def test_the_number_is_the_first_outside_the_sum_said_again(text, number):
    assert vote_data.number_in(text, 4, 5) == number


def test_every_sum_has_a_greedy_answer_and_as_many_sampled_ones():
    assert [(entry["a"], entry["b"]) for entry in DATA["sums"]] == list(vote_data.SUMS)
    assert len(set(vote_data.SUMS)) == len(vote_data.SUMS) == 24
    assert {len(entry["sampled"]) for entry in DATA["sums"]} == {vote_data.SAMPLES}


def test_the_file_says_how_it_was_made():
    assert DATA["question"] == vote_data.QUESTION
    assert (DATA["temperature"], DATA["max_tokens"]) == (vote_data.TEMPERATURE, vote_data.MAX_TOKENS)
    assert DATA["stop"] == list(vote_data.STOP)


def test_the_numbers_are_those_in_the_texts():
    for entry in DATA["sums"]:
        for answer in (entry["greedy"], *entry["sampled"]):
            assert answer["number"] == vote_data.number_in(answer["text"], entry["a"], entry["b"])


@pytest.mark.parametrize("place", [1, 10])
def test_asked_again_the_model_says_the_same_wherever_no_draw_was_near_an_edge(lm, place):
    entry = DATA["sums"][place]
    again = list(vote_data.answers(lm, entry["a"], entry["b"], samples=6))
    stored = [entry["greedy"], *entry["sampled"][:6]]
    sure = [(new["text"], old["text"]) for new, old in zip(again, stored, strict=True) if old["margin"] > SURE]
    assert len(sure) >= 3
    assert all(new == old for new, old in sure)


def test_a_file_is_written_in_the_form_that_is_read(lm, tmp_path, monkeypatch):
    monkeypatch.setattr(vote_data, "PATH", tmp_path / "vote.json")
    monkeypatch.setattr(vote_data, "load_checkpoint", lambda: lm)
    monkeypatch.setattr(vote_data, "SUMS", ((4, 4),))
    monkeypatch.setattr(vote_data, "SAMPLES", 0)
    vote_data.main()
    written = json.loads((tmp_path / "vote.json").read_text(encoding="utf-8"))
    stored = next(entry for entry in DATA["sums"] if (entry["a"], entry["b"]) == (4, 4))
    assert written == {**DATA, "sums": [{**stored, "sampled": []}]}
