"""`llm_internals.linear`: one product and one row look-up, for plain matrices and for any other kind."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import linear as torch_linear

from llm_internals.linear import PackedMatrix, linear, rows


class Doubled:
    """Another kind of matrix: it keeps half of every number."""

    def __init__(self, half):
        self.half = half
        self.shape = tuple(half.shape)

    def product(self, x):
        return 2 * (x @ self.half)

    def rows(self, ids):
        return 2 * self.half.t()[ids]


def test_a_product_by_hand():
    x = torch.tensor([[1.0, 2.0], [0.0, -1.0]])
    weight = torch.tensor([[1.0, 0.0, 5.0], [0.0, 1.0, 5.0]])
    assert linear(x, weight).tolist() == [[1, 2, 15], [0, -1, -5]]


@given(st.lists(st.integers(1, 4), max_size=2), st.integers(1, 5), st.integers(1, 5))
def test_it_is_torch_s_linear_on_the_transposed_matrix_for_any_number_of_leading_axes(batch, inputs, outputs):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(*batch, inputs, generator=generator)
    weight = torch.randn(inputs, outputs, generator=generator)
    torch.testing.assert_close(linear(x, weight), torch_linear(x, weight.t()))


def test_rows_are_columns_of_the_stored_matrix_in_the_order_asked_for():
    weight = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert rows(weight, torch.tensor([2, 0, 2])).tolist() == [[3, 6], [1, 4], [3, 6]]


def test_rows_do_not_alias_the_matrix():
    weight = torch.ones(2, 3)
    rows(weight, torch.tensor([0])).zero_()
    assert weight.min() == 1


def test_another_kind_of_matrix_brings_its_own_product_and_rows():
    plain = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    packed = Doubled(plain / 2)
    assert isinstance(packed, PackedMatrix)
    x, ids = torch.tensor([[1.0, -1.0]]), torch.tensor([1])
    assert linear(x, packed).tolist() == linear(x, plain).tolist()
    assert rows(packed, ids).tolist() == rows(plain, ids).tolist()
