"""Stage 8: one step of a response with everything that was seen on the way: plain numbers, to JSON and back.

A step adds to `generate.Step` what the last position got in the pass that the step came out of: the length of its
vector layer by layer, where its heads looked, what each layer would have said (the logit lens), the likeliest tokens,
what each sampling operator left, and the bins that the number fell into one of.

What is shown and not computed with again is rounded when it is recorded, so that a file and the record in memory are
equal: logits to 3 decimals, probabilities to 4 significant digits, norms to 5. The fields of `generate.Step` are exact.

Leaves out the vectors themselves, and positions other than the last.

Chapter: ``00_one_response``.
Source: nostalgebraist (2020), "interpreting GPT: the logit lens"; `sampling.account`.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from llm_internals.config import LlamaConfig
from llm_internals.generate import Step
from llm_internals.sampling import SamplingParams
from llm_internals.trace.attention_map import AttentionMap
from llm_internals.trace.checked_json import TraceError, Value

Scored = tuple[tuple[int, float], ...]
"""Token ids with a score or a probability each, the largest first."""

ROUNDING = 1e-9
"""How far float64 arithmetic may push a log-probability above 0 or a sum of probabilities above 1."""
STOP_REASONS = ("eos", "stop", "length", "context")


@dataclass(frozen=True)
class LensLayer:
    """What the model would say if it ended after some layer.

    Attributes
    ----------
    top : tuple of (int, float)
        The likeliest tokens with their probabilities.
    rank, prob : int, float
        Where the token that was chosen in the end stands here, counted from 1, and its probability here.
    """

    top: Scored
    rank: int
    prob: float

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON has them."""
        return {"top": _pairs(self.top), "rank": self.rank, "prob": self.prob}

    @classmethod
    def from_json(cls, value: Value, vocab_size: int) -> "LensLayer":
        """The fields, checked."""
        fields = value.fields("top", "rank", "prob")
        top = scored(fields["top"], vocab_size, low=0.0, high=1.0)
        return cls(top, fields["rank"].integer(1, vocab_size), fields["prob"].number(0.0, 1.0))


@dataclass(frozen=True)
class OperatorStep:
    """What one sampling operator did at one step.

    Attributes
    ----------
    name, setting : str, object
        The operator, and the value of its setting.
    active : bool
        Whether it could change anything; if not, it passed on what it got.
    before, after : int
        How many tokens could be drawn before and after it.
    removed_mass : float
        The probability, before it, of what it removed.
    top : tuple of (int, float)
        The likeliest of its survivors with their probabilities after it; nothing if it isn't active.
    """

    name: str
    setting: object
    active: bool
    before: int
    after: int
    removed_mass: float
    top: Scored

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON has them, without those that follow from the response's settings."""
        counts = {"name": self.name, "before": self.before, "after": self.after}
        return counts | {"removed_mass": self.removed_mass, "top": _pairs(self.top)}

    @classmethod
    def from_json(cls, value: Value, params: SamplingParams, vocab_size: int) -> "OperatorStep":
        """The fields, checked; setting and activity come from the response's settings."""
        fields = value.fields("name", "before", "after", "removed_mass", "top")
        name = fields["name"].one_of(*params.order)
        before = fields["before"].integer(1, vocab_size)
        after = fields["after"].integer(1, before)
        removed_mass = fields["removed_mass"].number(0.0, 1.0)
        top = scored(fields["top"], vocab_size, low=0.0, high=1.0)
        return cls(name, getattr(params, name), params.is_active(name), before, after, removed_mass, top)


@dataclass(frozen=True, kw_only=True)
class TracedStep(Step):
    """A step of `generate`, unchanged, and what was seen on the way to it.

    Attributes
    ----------
    residual_norms : tuple of float [layers + 1]
        Length of the last position's vector after the embedding and after each block.
    attn_out_norms, mlp_out_norms : tuple of float [layers]
        Length of what attention and feed-forward added to it in each block.
    attention : AttentionMap
        Where each head looked from the last position.
    lens : tuple of LensLayer [layers + 1]
        After the embedding and after each block.
    top_logits : tuple of (int, float)
        The largest scores.
    log_normalizer : float
        log sum exp of all scores: ``exp(score - log_normalizer)`` is a token's probability at T = 1.
    operators : tuple of OperatorStep
        In the order in which they acted.
    bins : tuple of (int, float, float)
        Token, lower and upper edge of the widest bins that u could fall into, from left to right; none if greedy.
    """

    residual_norms: tuple[float, ...]
    attn_out_norms: tuple[float, ...]
    mlp_out_norms: tuple[float, ...]
    attention: AttentionMap
    lens: tuple[LensLayer, ...]
    top_logits: Scored
    log_normalizer: float
    operators: tuple[OperatorStep, ...]
    bins: tuple[tuple[int, float, float], ...]

    def ids(self) -> Iterator[int]:
        """Every token that the step mentions."""
        yield self.id
        lists = (
            self.top_logits,
            self.bins,
            *(layer.top for layer in self.lens),
            *(step.top for step in self.operators),
        )
        for entries in lists:
            yield from (entry[0] for entry in entries)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON has them. An infinite margin, of a choice without a rival, is null."""
        plain = ("id", "u", "logprob", "model_logprob", "n_candidates", "piece", "position", "stop_reason")
        lists = ("bin", "residual_norms", "attn_out_norms", "mlp_out_norms")
        return {
            **{name: getattr(self, name) for name in plain},
            **{name: list(getattr(self, name)) for name in lists},
            "margin": self.margin if math.isfinite(self.margin) else None,
            "attention": self.attention.to_json(),
            "lens": [layer.to_json() for layer in self.lens],
            "top_logits": _pairs(self.top_logits),
            "log_normalizer": self.log_normalizer,
            "operators": [operator.to_json() for operator in self.operators],
            "bins": [list(bin) for bin in self.bins],
        }

    @classmethod
    def from_json(cls, value: Value, config: LlamaConfig, params: SamplingParams, position: int) -> "TracedStep":
        """The fields, checked against the model's shape, the settings, and the place in the response."""
        fields = value.fields(*(name for name in cls.__dataclass_fields__ if name != "top_logprobs"))
        layers, vocab_size = config.num_hidden_layers, config.vocab_size
        found = fields["position"].integer(position, position)
        return cls(
            **_choice(fields, params, vocab_size),
            piece=fields["piece"].text(),
            position=found,
            stop_reason=fields["stop_reason"].one_of(None, *STOP_REASONS),
            residual_norms=_norms(fields["residual_norms"], layers + 1),
            attn_out_norms=_norms(fields["attn_out_norms"], layers),
            mlp_out_norms=_norms(fields["mlp_out_norms"], layers),
            attention=AttentionMap.from_json(fields["attention"], layers, config.num_attention_heads, position),
            lens=tuple(LensLayer.from_json(layer, vocab_size) for layer in fields["lens"].items(layers + 1)),
            top_logits=scored(fields["top_logits"], vocab_size),
            log_normalizer=fields["log_normalizer"].number(),
            operators=_operators(fields["operators"], params, vocab_size),
            bins=_bins(fields["bins"], vocab_size),
        )


def scored(value: Value, vocab_size: int, low: float = -math.inf, high: float = math.inf) -> Scored:
    """Tokens with a number each, the largest first."""
    found = []
    for entry in value.items():
        id, number = entry.items(length=2)
        found.append((id.integer(0, vocab_size - 1), number.number(low, high)))
    if any(left[1] < right[1] for left, right in pairwise(found)):
        raise TraceError(f"{value.key} must have the largest number first, but is out of order")
    return tuple(found)


def _choice(fields: dict[str, Value], params: SamplingParams, vocab_size: int) -> dict[str, Any]:
    """The fields of `choice.Choice`; a greedy choice has no u, and all others have one."""
    greedy = params.temperature == 0
    low, high = (edge.number(0.0, 1.0) for edge in fields["bin"].items(length=2))
    u = fields["u"].one_of(None) if greedy else fields["u"].number(low, high)
    return {
        "id": fields["id"].integer(0, vocab_size - 1),
        "u": u,
        "bin": (low, high),
        "margin": math.inf if fields["margin"].raw is None else fields["margin"].number(0.0),
        "logprob": fields["logprob"].number(high=ROUNDING),
        "model_logprob": fields["model_logprob"].number(high=ROUNDING),
        "n_candidates": fields["n_candidates"].integer(1, vocab_size),
        "top_logprobs": (),
    }


def _operators(value: Value, params: SamplingParams, vocab_size: int) -> tuple[OperatorStep, ...]:
    """All operators, each once, and each with what the one before it left."""
    found = tuple(OperatorStep.from_json(step, params, vocab_size) for step in value.items(len(params.order)))
    if len({step.name for step in found}) != len(found):
        raise TraceError(f"{value.key} must have each operator once, but has {[step.name for step in found]}")
    for left, right in pairwise(found):
        if left.after != right.before:
            raise TraceError(f"{value.key}: {right.name} must get the {left.after} tokens left, but has {right.before}")
    return found


def _bins(value: Value, vocab_size: int) -> tuple[tuple[int, float, float], ...]:
    """Tokens with two edges each, from left to right, none over another."""
    found, reached = [], 0.0
    for entry in value.items():
        id, low, high = entry.items(length=3)
        found.append((id.integer(0, vocab_size - 1), low.number(reached, 1.0), high.number(low.number(), 1.0)))
        reached = found[-1][2]
    return tuple(found)


def _norms(value: Value, length: int) -> tuple[float, ...]:
    """Lengths of vectors."""
    return tuple(norm.number(0.0) for norm in value.items(length))


def _pairs(entries: Iterable[tuple[int, float]]) -> list[list[int | float]]:
    """Pairs as JSON has them."""
    return [list(entry) for entry in entries]
