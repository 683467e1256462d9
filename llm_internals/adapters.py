"""Stage 9: a model and a loss -> the same model with a small trained change on top of some of its matrices (LoRA).

A full copy of the weights to train would double the memory, and a change in place would destroy the model to compare
with. So each chosen matrix W is wrapped: its product becomes x W + (x A) B, where A and B are thin. Only they are
trained; W, and every other tensor, is the very same object in both models.

Leaves out the factor alpha / r of the paper, whose effect is much that of another learning rate; dropout; and merging
the change into W, which saves time when a finished model is served.

Chapter: ``09_rlhf``.
Source: Hu et al. (2021), "LoRA: Low-rank adaptation of large language models", section 4.1, equation 3 (their A and B
are the transposes of ours); microsoft/LoRA ``loralib/layers.py``, ``Linear``; Kingma and Ba (2015), "Adam: A method for
stochastic optimization", algorithm 1.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from llm_internals.attention import AttentionWeights
from llm_internals.block import BlockWeights
from llm_internals.feed_forward import FeedForwardWeights
from llm_internals.linear import Matrix, linear, rows
from llm_internals.model import Weights

ADAPTABLE = tuple(field.name for part in (AttentionWeights, FeedForwardWeights) for field in fields(part))
"""The matrices of a block, by name."""

Record = TypeVar("Record")
Measure = Callable[[int], tuple[Tensor, Record]]
"""Number of updates so far -> the loss now, and what to report of it."""


@dataclass(frozen=True, eq=False, repr=False)
class AdaptedMatrix:
    """W + A B: a matrix of any kind with a change of low rank on top; a kind of weight itself (`linear.PackedMatrix`).

    Attributes
    ----------
    base : Matrix [in, out]
        W, which is read and never written.
    down : Tensor [in, rank]
        A.
    up : Tensor [rank, out]
        B.

    Examples
    --------
    >>> matrix = AdaptedMatrix(torch.eye(2), down=torch.tensor([[1.0], [1.0]]), up=torch.tensor([[0.0, 3.0]]))
    >>> linear(torch.tensor([[1.0, 2.0]]), matrix)
    tensor([[ 1., 11.]])
    >>> rows(matrix, torch.tensor([1]))
    tensor([[3., 4.]])
    """

    base: Matrix
    down: Float[Tensor, "in_features rank"]
    up: Float[Tensor, "rank out_features"]

    @property
    def shape(self) -> tuple[int, int]:
        """(in, out), that of the base."""
        return self.down.shape[0], self.up.shape[1]

    def product(self, x: Float[Tensor, "*batch in_features"]) -> Float[Tensor, "*batch out_features"]:
        """x W + (x A) B: the thin matrices one after the other, so that A B is never made."""
        return linear(x, self.base) + (x @ self.down) @ self.up

    def rows(self, ids: Int[Tensor, " seq"]) -> Float[Tensor, "seq in_features"]:
        """The columns ``ids`` of W + A B, as rows."""
        return rows(self.base, ids) + (self.down @ self.up[:, ids]).t()


def adapt(
    weights: Weights, *, rank: int = 8, targets: Collection[str] = ("q_proj", "v_proj"), seed: int = 0
) -> Weights:
    """Put an adapter on the named matrices of every block.

    A starts with uniform random numbers of size up to 1 / sqrt(in), and B with zeros. So A B is zero and the new model
    computes what the old one does, to the last bit; and B has a gradient from the first step on, which it wouldn't have
    if A were zero as well.

    Parameters
    ----------
    weights : Weights
        Isn't changed; the new model shares its tensors.
    rank : int
        Width of the change, at least 1: rank * (in + out) numbers a matrix.
    targets : collection of str
        Names from `ADAPTABLE`; queries and values by default, as in most of the paper's experiments (section 5.1).
    seed : int
        Of the random numbers in A.

    Returns
    -------
    Weights
        A model like any other, for `model.forward` and all that is built on it.

    Raises
    ------
    ValueError
        If ``rank`` is below 1, or ``targets`` is empty or has an unknown name.
    """
    if rank < 1:
        raise ValueError(f"rank must be at least 1, but is {rank}")
    if not targets or not set(targets) <= set(ADAPTABLE):
        raise ValueError(f"targets must be one or more of {', '.join(ADAPTABLE)}, but is {sorted(targets)}")
    generator = torch.Generator().manual_seed(seed)
    dtype = weights.norm.dtype
    layers = tuple(_adapt_block(layer, rank, targets, generator, dtype) for layer in weights.layers)
    return replace(weights, layers=layers)


def _adapt_block(
    block: BlockWeights, rank: int, targets: Collection[str], generator: torch.Generator, dtype: torch.dtype
) -> BlockWeights:
    """The block with its targets wrapped, in the order of `ADAPTABLE`, so that a seed gives the same numbers."""

    def adapt_part(part: AttentionWeights | FeedForwardWeights) -> AttentionWeights | FeedForwardWeights:
        names = [field.name for field in fields(part) if field.name in targets]
        return replace(part, **{name: _start(getattr(part, name), rank, generator, dtype) for name in names})

    return replace(block, self_attn=adapt_part(block.self_attn), mlp=adapt_part(block.mlp))


def _start(base: Matrix, rank: int, generator: torch.Generator, dtype: torch.dtype) -> AdaptedMatrix:
    """An adapter that changes nothing yet."""
    in_features, out_features = base.shape
    uniform = torch.rand(in_features, rank, generator=generator, dtype=dtype)
    return AdaptedMatrix(
        base, down=(2 * uniform - 1) / math.sqrt(in_features), up=torch.zeros(rank, out_features, dtype=dtype)
    )


def adapter_parameters(weights: Weights) -> list[Tensor]:
    """The tensors that training may change: A and B of each adapter, a layer after the other.

    Raises
    ------
    ValueError
        If the model has no adapters.
    """
    matrices = [getattr(part, field.name) for part in _parts(weights) for field in fields(part)]
    parameters = [p for matrix in matrices if isinstance(matrix, AdaptedMatrix) for p in (matrix.down, matrix.up)]
    if not parameters:
        raise ValueError("weights must have adapters to train: make them with adapt(weights)")
    return parameters


def _parts(weights: Weights) -> Iterator[AttentionWeights | FeedForwardWeights]:
    for layer in weights.layers:
        yield layer.self_attn
        yield layer.mlp


@contextmanager
def gradients_of(parameters: Sequence[Tensor]) -> Iterator[None]:
    """Record what is computed from these tensors, inside the context and nowhere else.

    So a model whose training has stopped, or paused, generates text like any other, without keeping a record.
    """
    for parameter in parameters:
        parameter.requires_grad_(True)
    try:
        with torch.enable_grad():
            yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(False)


def train(weights: Weights, measure: Measure[Record], *, steps: int, learning_rate: float) -> Iterator[Record]:
    """Lower a loss by Adam on the adapters, with a step size that falls in a line to 0.

    Adam's steps hardly get shorter by themselves, so that with a constant step size it would circle the optimum. The
    same weights, loss and number of threads give the same bits.

    Parameters
    ----------
    weights : Weights
        With adapters, which are changed in place; nothing else is.
    measure : function
        Runs the model; it is called ``steps + 1`` times.
    steps : int
        Number of updates, at least 0.
    learning_rate : float
        Above 0: the first step size.

    Yields
    ------
    Record
        What ``measure`` reports: before the first update, and after each.

    Raises
    ------
    ValueError
        At once, if ``steps`` or ``learning_rate`` is out of range or the model has no adapters.
    """
    if steps < 0:
        raise ValueError(f"steps must be at least 0, but is {steps}")
    if not 0 < learning_rate < math.inf:
        raise ValueError(f"learning_rate must be a finite number above 0, but is {learning_rate}")
    return _updates(adapter_parameters(weights), measure, steps, learning_rate)


def _updates(parameters: list[Tensor], measure: Measure[Record], steps: int, learning_rate: float) -> Iterator[Record]:
    """The loop: measure, yield, update; the last measurement comes after the last update."""
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=max(steps, 1))
    for step in range(steps):
        optimizer.zero_grad()
        with gradients_of(parameters):
            loss, record = measure(step)
            loss.backward()
        yield record
        optimizer.step()
        decay.step()
    with torch.no_grad():
        yield measure(steps)[1]
