"""Stage 8: a prompt and settings -> the whole response, with everything that there is to see on the way.

Recording is looking: `trace` drives `generate` itself and watches it through a tap that replaces nothing, so the steps
are those of `generate`, bit for bit. What each sampling operator left is worked out once more, by `sampling.account`,
from the same logits.

Leaves out what the prompt's other positions got: a tap of one's own shows it (`tap.Recorder`).

Chapter: ``00_one_response``.
Source: TransformerLens ``ActivationCache.py``, ``accumulated_resid`` and ``logit_attrs``.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from llm_internals.chat import Message, encode_chat, render_chat
from llm_internals.checkpoint import LanguageModel
from llm_internals.generate import Step, generate
from llm_internals.logits import logit_lens
from llm_internals.model import Weights
from llm_internals.sampling import OperatorRecord, SamplingParams, account
from llm_internals.scores import as_logits, largest
from llm_internals.trace.attention_map import AttentionMap
from llm_internals.trace.response import Trace
from llm_internals.trace.steps import LensLayer, OperatorStep, Scored, TracedStep

TOP_LOGITS = 20
"""How many of the largest scores a step keeps."""
TOP_SURVIVORS = 10
"""How many survivors of an operator a step keeps."""
TOP_LENS = 5
"""How many tokens a step keeps for each layer."""
BINS = 40
"""How many bins of the draw a step keeps, the widest ones."""
WATCHED = ("embed", "attn.pattern", "attn_out", "mlp_out", "resid_post", "logits")

OnStep = Callable[[TracedStep], None]


class LastPosition:
    """A tap that keeps what the last position got in the pass that ran last, and changes nothing.

    Everything that is watched has the position as its last axis but one. Of a prompt that goes through in chunks, the
    last chunk stays.

    Examples
    --------
    >>> seen = LastPosition()
    >>> seen("blocks.0.resid_post", torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> seen["blocks.0.resid_post"]
    tensor([3., 4.])
    """

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}

    def __call__(self, name: str, value: Tensor) -> None:
        """Keep the last row of what is watched."""
        if name.endswith(WATCHED):
            self.tensors[name] = value[..., -1, :].detach().clone()

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def layers(self, name: str, count: int) -> Tensor:
        """The same activation of the first ``count`` blocks, layers first."""
        return torch.stack([self[f"blocks.{layer}.{name}"] for layer in range(count)])


def trace(
    lm: LanguageModel,
    prompt: str | Sequence[Message],
    params: SamplingParams,
    *,
    max_tokens: int,
    stop: Sequence[str] = (),
    on_step: OnStep | None = None,
) -> Trace:
    """Generate a response and record it.

    Parameters
    ----------
    lm : LanguageModel
    prompt : str or sequence of messages
        Text to go on with as it is, or a conversation to answer, in the model's template (`chat`).
    params : SamplingParams
    max_tokens : int
        At most so many steps.
    stop : sequence of str
        As in `generate`.
    on_step : callable, optional
        Is given each step as soon as it is recorded.

    Raises
    ------
    TypeError
        ``prompt`` is neither.
    ValueError
        As `generate` and `chat.encode_chat`.
    """
    text, prompt_ids = read_prompt(lm, prompt)
    seen = LastPosition()
    steps: list[TracedStep] = []
    for step in generate(lm, prompt_ids, params, max_tokens=max_tokens, stop=stop, tap=seen):
        history = account(seen["logits"], params, prompt_ids, [earlier.id for earlier in steps])
        steps.append(record_step(step, seen, history, lm.weights))
        if on_step is not None:
            on_step(steps[-1])
    mentioned = {*prompt_ids, *(id for step in steps for id in step.ids())}
    return Trace(
        config=lm.config,
        prompt=text,
        prompt_ids=tuple(prompt_ids),
        params=params,
        max_tokens=max_tokens,
        stop=tuple(stop),
        steps=tuple(steps),
        tokens={id: lm.tokenizer.token_bytes(id) for id in sorted(mentioned)},
        special_ids=frozenset(mentioned & set(lm.tokenizer.special_tokens.values())),
    )


def read_prompt(lm: LanguageModel, prompt: str | Sequence[Message]) -> tuple[str, list[int]]:
    """What the model will see, as text and as ids."""
    if isinstance(prompt, str):
        return prompt, lm.tokenizer.encode(prompt)
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes):
        raise TypeError(f"prompt must be a str or a list of messages, got {type(prompt).__name__}")
    return render_chat(prompt), encode_chat(lm.tokenizer, prompt)


def record_step(step: Step, seen: LastPosition, history: Sequence[OperatorRecord], weights: Weights) -> TracedStep:
    """Add to a step what was seen in the pass that it came out of."""
    layers = weights.config.num_hidden_layers
    stream = torch.stack([seen["embed"], *seen.layers("resid_post", layers)])  # [layers + 1, hidden_size]
    logits = as_logits(seen["logits"])
    top = largest(logits, TOP_LOGITS)
    return TracedStep(
        **vars(step),
        residual_norms=norms(stream),
        attn_out_norms=norms(seen.layers("attn_out", layers)),
        mlp_out_norms=norms(seen.layers("mlp_out", layers)),
        attention=AttentionMap.of(seen.layers("attn.pattern", layers).numpy()),
        lens=lens_layers(stream, weights, step.id),
        top_logits=tuple((int(id), round(float(logits[id]), 3)) for id in top),
        log_normalizer=round(float(np.logaddexp.reduce(logits)), 3),
        operators=tuple(map(operator_step, history)),
        bins=() if step.u is None else widest_bins(history[-1].after),
    )


def lens_layers(stream: Tensor, weights: Weights, chosen: int) -> tuple[LensLayer, ...]:
    """What each row of the stream [layers + 1, hidden_size] would say if the model ended there."""
    logits = logit_lens(stream, weights)
    probs = logits.softmax(dim=-1)
    top = probs.topk(min(TOP_LENS, probs.shape[1]), dim=-1)
    ranks = 1 + (logits > logits[:, chosen, None]).sum(dim=-1)
    return tuple(
        LensLayer(rounded_scores(ids, values), int(rank), significant(prob, 4))
        for ids, values, rank, prob in zip(
            top.indices.tolist(), top.values.tolist(), ranks.tolist(), probs[:, chosen].tolist(), strict=True
        )
    )


def operator_step(record: OperatorRecord) -> OperatorStep:
    """What one operator did, in a few numbers."""
    likeliest = largest(record.after, min(TOP_SURVIVORS, len(record.kept))) if record.active else []
    return OperatorStep(
        name=record.name,
        setting=record.setting,
        active=record.active,
        before=len(record.candidates),
        after=len(record.kept),
        removed_mass=significant(min(record.removed_mass, 1.0), 4),
        top=rounded_scores(likeliest, [record.after[id] for id in likeliest]),
    )


def widest_bins(probs: np.ndarray) -> tuple[tuple[int, float, float], ...]:
    """The bins of `drawing.draw_bin` that take most of [0, 1), in its order."""
    ids = np.flatnonzero(probs)
    edges = np.cumsum(probs[ids])
    edges = np.concatenate([[0.0], edges / edges[-1]])
    widest = np.sort(largest(probs[ids], BINS))
    return tuple((int(ids[i]), round(float(edges[i]), 6), round(float(edges[i + 1]), 6)) for i in widest)


def norms(vectors: Tensor) -> tuple[float, ...]:
    """Length of each row."""
    return tuple(significant(norm, 5) for norm in vectors.norm(dim=-1).tolist())


def rounded_scores(ids: Sequence[int] | np.ndarray, probs: Sequence[float]) -> Scored:
    """Tokens with their probabilities, rounded."""
    return tuple((int(id), significant(float(prob), 4)) for id, prob in zip(ids, probs, strict=True))


def significant(number: float, digits: int) -> float:
    """A number with so many digits that count.

    >>> significant(0.000123456, 4), significant(23331.2, 4)
    (0.0001235, 23330.0)
    """
    return float(f"{number:.{digits}g}")
