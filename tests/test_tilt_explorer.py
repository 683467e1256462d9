"""The data of the tilt explorer: true to the model, and exact enough for the digits that the figure shows."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from llm_internals.checkpoint import LanguageModel
from llm_internals.figures.sampling_explorer import explorer_logits
from llm_internals.tilt import kl_divergence, objective, tilt
from tools import book_data

STORED = Path(__file__).parent.parent / "book" / "data" / "tilt_explorer.json"
SHOWN = 1e-3
"""What the page promises for every number of the figure."""


@pytest.fixture(scope="module")
def stored() -> list[dict]:
    """What the page reads."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def test_the_stored_logits_are_those_of_the_model(lm: LanguageModel, stored: list[dict]) -> None:
    assert book_data.same_logits(stored, book_data.explorer_entries(lm, book_data.TILT_PROMPTS))
    assert [explorer_logits(entry).size for entry in stored] == [lm.config.vocab_size] * len(stored)


def test_the_tokens_of_a_prompt_differ_as_written_so_that_one_can_be_chosen(stored: list[dict]) -> None:
    assert all(len(set(entry["tokens"])) == len(entry["tokens"]) == 10 for entry in stored)


def test_the_file_stays_small_enough_for_a_page() -> None:
    assert STORED.stat().st_size < 50_000


@pytest.mark.parametrize("beta", [0.02, 0.25, 10.0])
@pytest.mark.parametrize("reward", [-1.0, 0.5, 2.0])
def test_rounding_moves_no_number_of_the_figure_by_more_than_the_page_says(
    beta: float, reward: float, lm: LanguageModel, stored: list[dict]
) -> None:
    exact = [np.sort(scores)[::-1].copy() for scores in book_data.explorer_scores(lm, book_data.TILT_PROMPTS)]
    for entry, logits in zip(stored, exact, strict=True):
        paid = torch.zeros(logits.size, dtype=torch.float64)
        paid[1] = reward
        numbers = []
        for scores in (explorer_logits(entry), logits):
            before = torch.tensor(scores).log_softmax(dim=0)
            after = tilt(before, paid, beta)
            entropy = -(after.exp() * after).sum()
            numbers.append(
                [after[1].exp(), kl_divergence(after, before), objective(after, before, paid, beta), entropy]
            )
        assert np.abs(np.diff(numbers, axis=0)).max() < SHOWN
