"""``book/data/questions.json``: closed questions with one right answer, and what the model makes of them.

Facts about the world can't be computed; those of grammar, the calendar and arithmetic can, and are.
"""

import calendar
import json
import re
import string
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from llm_internals.likelihood import answer_logits

PATH = Path(__file__).parent.parent / "book" / "data" / "questions.json"
DATA = json.loads(PATH.read_text(encoding="utf-8"))
KINDS, QUESTIONS = DATA["kinds"], DATA["questions"]


def of_kind(kind):
    return [question for question in QUESTIONS if question["kind"] == kind]


def asked(kind, template):
    """What stands in the place of the group in each prompt of a kind, with the answer without its space."""
    matches = [(re.fullmatch(template, question["prompt"]), question["answer"].strip()) for question in of_kind(kind)]
    return [(match.group(1), answer) for match, answer in matches]


def test_there_are_enough_questions_of_enough_kinds_and_none_twice():
    assert len(QUESTIONS) >= 150
    assert set(Counter(question["kind"] for question in QUESTIONS)) == set(KINDS)
    assert min(Counter(question["kind"] for question in QUESTIONS).values()) >= 5
    assert len({question["prompt"] for question in QUESTIONS}) == len(QUESTIONS)


def test_every_kind_says_where_its_answers_come_from_and_gives_two_examples():
    for kind in KINDS.values():
        assert kind["source"].endswith(".")
        lines = kind["examples"].split("\n")
        assert len(lines) == 3
        assert all(line.endswith(".") for line in lines[:2])
        assert not lines[2]


def test_no_example_is_a_question_of_the_list():
    for question in QUESTIONS:
        for line in KINDS[question["kind"]]["examples"].splitlines():
            assert not line.startswith(question["prompt"])
            assert question["prompt"] + question["answer"] + "." != line


def test_examples_have_the_form_of_the_questions():
    """An example begins as a question of its kind does, so that what the model is shown is the form of an answer."""
    for kind in set(KINDS) - {"sums", "two-digit sums", "authors", "continents"}:
        first_word = {question["prompt"].split()[0] for question in of_kind(kind)}
        assert {line.split()[0] for line in KINDS[kind]["examples"].splitlines()} == first_word


def test_an_answer_begins_with_a_space_unless_its_prompt_ends_with_one():
    for question in QUESTIONS:
        assert question["prompt"].endswith(" ") != question["answer"].startswith(" ")
        assert question["answer"] == question["answer"].rstrip()


@pytest.mark.parametrize("kind", ["sums", "two-digit sums"])
def test_sums_are_right(kind):
    for terms, answer in asked(kind, r"(\d+ \+ \d+) = "):
        assert sum(map(int, terms.split(" + "))) == int(answer)


@pytest.mark.parametrize(("kind", "names"), [("months", calendar.month_name[1:]), ("days", list(calendar.day_name))])
def test_what_comes_next_in_the_calendar_is_right(kind, names):
    for name, answer in asked(kind, rf"The {kind[:-1]} after (\w+) is"):
        assert names[(names.index(name) + 1) % len(names)] == answer


def test_the_next_letters_are_right():
    for letter, answer in asked("letters", r"The letter after (\w) is"):
        assert string.ascii_uppercase[string.ascii_uppercase.index(letter) + 1] == answer


def test_ordinals_of_planets_are_right():
    order = ["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"]
    ordinals = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]
    answers = dict(asked("planets", r"The (.*) is"))
    counted = {key.split()[0]: value for key, value in answers.items() if key.endswith(" planet from the Sun")}
    assert len(counted) >= 6
    assert all(order[ordinals.index(ordinal)] == answer for ordinal, answer in counted.items())


def test_no_opposite_contradicts_another():
    pairs = asked("opposites", r"The opposite of (\w+) is")
    words = [word for pair in pairs for word in pair]
    assert max(Counter(words).values()) == 1


def test_a_prompt_s_tokens_are_the_beginning_of_those_of_prompt_and_answer(lm):
    """Otherwise the model would be asked about a token that the text doesn't have."""
    for question in QUESTIONS:
        for lead in ("", KINDS[question["kind"]]["examples"]):
            prompt = lm.tokenizer.encode(lead + question["prompt"])
            whole = lm.tokenizer.encode(lead + question["prompt"] + question["answer"])
            assert whole[: len(prompt)] == prompt
            assert len(whole) > len(prompt)


def test_one_answer_in_ten_at_least_has_several_tokens(lm):
    lengths = [len(lm.tokenizer.encode(question["answer"])) for question in QUESTIONS]
    assert sum(length > 1 for length in lengths) >= len(QUESTIONS) / 10


def test_the_examples_turn_the_model_s_first_word_into_an_answer(lm):
    """Five questions that the bare prompt doesn't get an answer to: the first word is a form of speech instead."""
    chosen = [q for q in QUESTIONS if q["prompt"] in {"2 + 3 = ", "Today I take. Yesterday I", "One man, two"}]
    chosen += [q for q in QUESTIONS if q["prompt"] in {"The opposite of empty is", "The color of snow is"}]
    assert len(chosen) == 5
    right = {True: 0, False: 0}
    for question in chosen:
        for shown in right:
            lead = KINDS[question["kind"]]["examples"] if shown else ""
            prompt = lm.tokenizer.encode(lead + question["prompt"])
            answer = lm.tokenizer.encode(lead + question["prompt"] + question["answer"])[len(prompt) :]
            logits = answer_logits(prompt, answer, lm.weights)[0].numpy()
            right[shown] += int(np.argmax(logits)) == answer[0]
    assert right == {True: 5, False: 0}
