"""The data of the attention map: small, true to the model, and with the places that its buttons promise."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from llm_internals.checkpoint import LanguageModel
from llm_internals.trace.attention_map import WEIGHT_ERROR, AttentionMap
from tools import attention_map_data, book_data

STORED = Path(__file__).parent.parent / "book" / "data" / "attention_map.json"


@pytest.fixture(scope="module")
def stored() -> dict:
    """What the page reads."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def triangle(stored: dict, place: dict) -> np.ndarray:
    """The pattern of one head as the page draws it, lower triangle."""
    [index] = [at for at, prompt in enumerate(stored["prompts"]) if prompt["name"] == place["prompt"]]
    size = len(stored["prompts"][index]["tokens"])
    weights = np.zeros((size, size))
    weights[np.tril_indices(size)] = attention_map_data.levels(stored, index)[place["layer"], place["head"]] / 255
    return weights


def test_the_stored_data_are_what_the_model_computes(lm: LanguageModel, stored: dict) -> None:
    file = book_data.FILES[STORED.name]
    assert file.agrees(stored, file.build(lm))


def test_it_is_small_enough_for_a_page() -> None:
    assert STORED.stat().st_size < 150_000


def test_every_weight_is_carried_within_half_a_level_and_every_row_is_whole(lm: LanguageModel, stored: dict) -> None:
    for index, text in enumerate(attention_map_data.PROMPTS.values()):
        exact = attention_map_data.lower_triangles(attention_map_data.patterns(lm, text))
        carried = attention_map_data.levels(stored, index) / 255
        assert np.abs(carried - exact).max() < 3 * WEIGHT_ERROR, "half a level, and a level for another CPU"
        size = len(stored["prompts"][index]["tokens"])
        starts = np.arange(size) * np.arange(1, size + 1) // 2
        np.testing.assert_allclose(np.add.reduceat(carried, starts, axis=-1), 1, atol=size * WEIGHT_ERROR)


@pytest.mark.parametrize(
    ("place", "back"),
    [
        ("the look that finds Australia", 1),
        ("one token back", 1),
        ("after the last time", 11),
        ("the same word before", 12),
        ("the first token", 20),
        ("who isn't John", 12),
    ],
)
def test_a_button_leads_to_a_token_that_looks_most_where_it_says(stored: dict, place: str, back: int) -> None:
    [found] = [entry for entry in stored["places"] if entry["name"] == place]
    row = triangle(stored, found)[found["token"]]
    assert found["token"] - int(row.argmax()) == back
    assert row.max() > 0.6


def test_the_weights_of_each_text_are_kept_row_by_row_without_what_the_mask_hides() -> None:
    weights = np.arange(2 * 3 * 9, dtype=np.float32).reshape(2, 3, 3, 3)
    kept = attention_map_data.lower_triangles(weights)
    assert kept.shape == (2, 3, 6)
    assert kept[1, 2].tolist() == weights[1, 2][[0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]].tolist()


def with_weights(data: dict, weights: np.ndarray) -> dict:
    """Data whose first text has other weights."""
    changed = copy.deepcopy(data)
    changed["prompts"][0]["weights"] = AttentionMap.of(weights.astype(np.float32)).to_json()
    return changed


def test_one_level_is_the_same_and_two_levels_or_another_token_are_not(stored: dict) -> None:
    same = attention_map_data.same_weights
    weights = attention_map_data.levels(stored, 0) / 255
    nudged, moved = weights.copy(), weights.copy()
    nudged[3, 4, 5] += 1 / 255
    moved[3, 4, 5] += 2 / 255
    renamed = copy.deepcopy(stored)
    renamed["prompts"][0]["tokens"][1] = "␣town"
    assert same(stored, with_weights(stored, nudged))
    assert not any(same(stored, other) for other in (with_weights(stored, moved), renamed, stored | {"layers": 29}))
