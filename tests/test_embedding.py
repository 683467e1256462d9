"""`llm_internals.embedding`: a vector for each id, and nothing else."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.embedding import embed

TABLE = torch.arange(12.0).view(3, 4)  # [hidden_size, vocab_size]


def test_a_token_s_vector_is_its_column():
    assert embed(torch.tensor([3, 0]), TABLE).tolist() == [[3, 7, 11], [0, 4, 8]]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_a_token_has_the_same_vector_wherever_it_stands(ids):
    together = embed(torch.tensor(ids), TABLE)
    alone = [embed(torch.tensor([id]), TABLE)[0] for id in ids]
    assert torch.equal(together, torch.stack(alone))


@pytest.mark.parametrize(("ids", "index", "id"), [([0, 4], 1, 4), ([-1, 0], 0, -1), ([1, 2, 99, 77], 2, 99)])
def test_an_id_out_of_range_is_named_with_its_place(ids, index, id):
    with pytest.raises(ValueError, match=rf"ids must be in \[0, 4\), but the id at index {index} is {id}"):
        embed(torch.tensor(ids), TABLE)


def test_no_ids_give_no_vectors():
    assert embed(torch.tensor([], dtype=torch.long), TABLE).shape == (0, 3)
