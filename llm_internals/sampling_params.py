"""Stage 5: the settings of a choice, checked once, and the order in which they act.

Each operator has the name of the setting that drives it, so that an order is a permutation of names.
`ORDERS` holds the orders of four engines; an operator that an engine lacks stands where its nearest relative does
(off by default, so that its place matters only to someone who combines it).

| engine | order of the operators it has |
|---|---|
| transformers 5.24 | bias, repetition, n-gram ban, banned ids, temperature, top-k, top-p, min-p, typical |
| vLLM | banned ids, bias, repetition, frequency, presence, temperature, min-p, top-k, top-p |
| llama.cpp | bias, penalties, top-k, typical, top-p, min-p, temperature |
| mlx-lm | bias, penalties, top-p, min-p, top-k, temperature |

mlx-lm never renormalises between truncations, and its order makes that invisible: top-p comes first and sees the whole
T = 1 distribution, and a common factor changes nothing for min-p and top-k.

Left out, since they aren't orders: llama.cpp and mlx-lm read only the last 64 and 20 tokens for penalties; defaults
differ (transformers' ``do_sample=True`` means top-k 50; llama.cpp T .8, top-k 40, top-p .95, min-p .05); ``top_p=0`` is
off in mlx-lm.

Chapter: ``05_sampling``, ``08_interventions``.
Source: transformers ``generation/utils.py``, ``_get_logits_processor``; vLLM ``v1/sample/sampler.py``, ``Sampler``;
llama.cpp ``common/sampling.cpp``, ``common_sampler_init``; mlx-lm ``sample_utils.py``, ``make_sampler`` and
``make_logits_processors``.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from types import MappingProxyType
from typing import no_type_check

NEUTRAL: Mapping[str, object] = MappingProxyType(
    {
        "logit_bias": None,
        "repetition_penalty": 1.0,
        "frequency_penalty": 0.0,
        "presence_penalty": 0.0,
        "no_repeat_ngram_size": 0,
        "banned_ids": (),
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        "typical_p": 1.0,
    }
)
"""Every operator and the setting at which it changes nothing: the defaults of `SamplingParams`."""

_PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty")
_BANS = ("no_repeat_ngram_size", "banned_ids")

ORDERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "transformers": ("logit_bias", *_PENALTIES, *_BANS, "temperature", "top_k", "top_p", "min_p", "typical_p"),
        "vllm": (*_BANS, "logit_bias", *_PENALTIES, "temperature", "min_p", "top_k", "top_p", "typical_p"),
        "llama.cpp": ("logit_bias", *_PENALTIES, *_BANS, "top_k", "typical_p", "top_p", "min_p", "temperature"),
        "mlx-lm": ("logit_bias", *_PENALTIES, *_BANS, "typical_p", "top_p", "min_p", "top_k", "temperature"),
    }
)
"""Engine -> its operators, first to last; ``"transformers"`` is the default."""


@no_type_check  # it checks itself, with errors that say what is allowed
@dataclass(frozen=True)
class SamplingParams:
    """How the next token is chosen; names as in vLLM and transformers. The defaults leave the model's own distribution.

    Parameters
    ----------
    temperature : float
        At least 0: logits are divided by it; 0 is greedy by rule.
    top_k : int or None
        Keep the k likeliest; 0 or ``None`` is off.
    top_p : float
        In [0, 1]: keep the smallest set that reaches p; 1 is off, 0 keeps the likeliest.
    min_p : float
        In [0, 1]: keep what is at least this fraction of the likeliest; 0 is off.
    typical_p : float
        In [0, 1]: keep what is nearest to the entropy until p is reached; 1 is off.
    repetition_penalty : float
        Greater than 0: divides positive logits of ids in prompt and output, multiplies negative ones; 1 is off.
    presence_penalty, frequency_penalty : float
        Finite, in logits: subtracted from ids in the output, once or for each occurrence; 0 is off, negative rewards.
    no_repeat_ngram_size : int
        At least 0: no n-gram of this size occurs twice in prompt and output; 0 is off.
    logit_bias : mapping from int to float, or None
        Token id -> finite number added to its logit.
    banned_ids : collection of int
        Token ids that can't be drawn.
    seed : int or None
        At least 0, or ``None``: seeds the stream of uniform numbers of a generation.
    order : sequence of str
        The operators, first to last, each by the name of its setting: a permutation of ``ORDERS["transformers"]``.

    Raises
    ------
    ValueError
        A setting of the wrong type or out of range; an order that misses, repeats or doesn't know an operator.

    Examples
    --------
    >>> SamplingParams(temperature=0.7, top_p=0.9).top_p
    0.9
    >>> SamplingParams(top_p=1.5)
    Traceback (most recent call last):
        ...
    ValueError: top_p must be a number in [0, 1], got 1.5
    """

    temperature: float = 1.0
    top_k: int | None = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    no_repeat_ngram_size: int = 0
    logit_bias: Mapping[int, float] | None = field(default=None, hash=False)
    banned_ids: tuple[int, ...] = ()
    seed: int | None = None
    order: tuple[str, ...] = ORDERS["transformers"]

    def __post_init__(self) -> None:
        checked = {
            "temperature": _number("temperature", self.temperature, "a finite number >= 0", low=0.0),
            "top_k": None if self.top_k is None else _integer("top_k", self.top_k, "an integer >= 0, or None"),
            "repetition_penalty": _positive("repetition_penalty", self.repetition_penalty),
            "presence_penalty": _number("presence_penalty", self.presence_penalty, "a finite number"),
            "frequency_penalty": _number("frequency_penalty", self.frequency_penalty, "a finite number"),
            "no_repeat_ngram_size": _integer("no_repeat_ngram_size", self.no_repeat_ngram_size, "an integer >= 0"),
            "logit_bias": _biases(self.logit_bias),
            "banned_ids": _ids(self.banned_ids),
            "seed": None if self.seed is None else _integer("seed", self.seed, "an integer >= 0, or None"),
            "order": _order(self.order),
        }
        for name in ("top_p", "min_p", "typical_p"):
            checked[name] = _number(name, getattr(self, name), "a number in [0, 1]", low=0.0, high=1.0)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def is_active(self, operator: str) -> bool:
        """Return whether the operator can change anything: its setting isn't the one at which it is off.

        >>> SamplingParams(top_k=50).is_active("top_k"), SamplingParams(top_k=None).is_active("top_k")
        (True, False)
        """
        setting = getattr(self, operator)
        return bool(setting) if operator in ("top_k", "logit_bias", "banned_ids") else setting != NEUTRAL[operator]


def _number(name: str, value: object, allowed: str, low: float = -math.inf, high: float = math.inf) -> float:
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:  # an int beyond float64
        number = math.inf
    if not math.isfinite(number) or not low <= number <= high:
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return number


def _positive(name: str, value: object) -> float:
    number = _number(name, value, "a finite number > 0", low=0.0)
    if number == 0:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
    return number


def _integer(name: str, value: object, allowed: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return int(value)


def _ids(ids: object) -> tuple[int, ...]:
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise ValueError(f"banned_ids must be a collection of token ids >= 0, got {ids!r}")
    return tuple(_integer("banned_ids", token, "token ids: integers >= 0") for token in ids)


def _biases(bias: object) -> dict[int, float] | None:
    if bias is None:
        return None
    if not isinstance(bias, Mapping):
        raise ValueError(f"logit_bias must be a mapping from token id to a finite number, or None, got {bias!r}")
    return {
        _integer("logit_bias", token, "keyed by token ids: integers >= 0"): _number(
            f"logit_bias[{token}]", value, "a finite number (banned_ids removes a token)"
        )
        for token, value in bias.items()
    }


def _order(order: object) -> tuple[str, ...]:
    if isinstance(order, str) or not isinstance(order, Iterable):
        raise ValueError(f"order must be a sequence of operator names such as ORDERS['vllm'], got {order!r}")
    names = tuple(order)
    if sorted(map(str, names)) != sorted(NEUTRAL):
        wrong = {
            "unknown": [name for name in names if name not in NEUTRAL],
            "repeated": sorted({name for name in names if names.count(name) > 1}, key=str),
            "missing": [name for name in NEUTRAL if name not in names],
        }
        found = "; ".join(f"{kind}: {', '.join(map(str, which))}" for kind, which in wrong.items() if which)
        raise ValueError(f"order must name each of {', '.join(NEUTRAL)} once, got {found}")
    return names
