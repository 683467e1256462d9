"""Stage 7: the loop that turns a prompt into a response, one token a step.

Prefill sends the whole prompt through the model and fills the cache; the last position's logits give the first token.
Every further step sends one token through. The loop ends at an end token, at a stop string, after ``max_tokens``, or
where the context ends.

Leaves out batches of several prompts, and anything that runs ahead of the loop, such as speculative decoding.

Chapter: ``07_generation_loop``.
Source: Radford et al. (2019), "Language models are unsupervised multitask learners", section 2; gpt-fast
``generate.py``, ``prefill`` and ``decode_one_token``; transformers ``generation/utils.py``,
``GenerationMixin._sample``.
"""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from llm_internals.checkpoint import LanguageModel
from llm_internals.choice import Choice, choose
from llm_internals.detokenizer import StreamingDetokenizer
from llm_internals.kv_cache import KVCache
from llm_internals.logits import lm_head
from llm_internals.model import decode_step, prefill
from llm_internals.sampling import SamplingParams
from llm_internals.tap import Tap, report


@dataclass(frozen=True, kw_only=True)
class Step(Choice):
    """One turn of the loop: how the token was chosen, and what became of it.

    Attributes
    ----------
    piece : str
        The text that became certain with this token: often a word, nothing while a character is unfinished or a stop
        string may be growing. An end token adds no text of its own. All pieces joined are the response.
    position : int
        Where the token stands in the sequence of prompt and response, counted from 0.
    stop_reason : {"eos", "stop", "length", "context"} or None
        Set on the last step: an end token, a stop string, ``max_tokens``, or no room for another token.
    """

    piece: str
    position: int
    stop_reason: str | None


def generate(
    lm: LanguageModel,
    prompt_ids: Sequence[int],
    params: SamplingParams,
    *,
    max_tokens: int,
    stop: Sequence[str] = (),
    stop_ids: Collection[int] | None = None,
    cache: KVCache | None = None,
    top_logprobs: int = 0,
    tap: Tap | None = None,
) -> Iterator[Step]:
    """Continue a prompt; yields each step as soon as it is made, and can be abandoned at any of them.

    Parameters
    ----------
    lm : LanguageModel
    prompt_ids : sequence of int
        At least one token, from ``lm.tokenizer.encode`` or `chat.encode_chat`.
    params : SamplingParams
        How each token is chosen; its seed starts the stream of random numbers.
    max_tokens : int
        At most so many steps; 0 gives none.
    stop : sequence of str
        Text that ends the response and isn't part of it; it may begin and end inside tokens.
    stop_ids : collection of int, optional
        Tokens that end the response; the model's own end tokens if None, no token if empty.
    cache : KVCache, optional
        A cache of an earlier call: the positions at which it holds the same tokens as the prompt aren't computed again,
        and what differs is dropped. After the last step it holds everything but the last token.
    top_logprobs : int
        How many of the likeliest tokens each step reports.
    tap : Tap, optional
        Is shown what `model.forward` computes in every pass and, under the name ``logits``, the scores [1, vocab_size]
        that the choice is made from; it may replace them. When a step is yielded, the last pass shown is the one
        that the step came out of.

    Raises
    ------
    ValueError
        At once, before the first step, for an empty prompt, an id out of range, a negative ``max_tokens`` or
        ``top_logprobs``, stop strings that `StreamingDetokenizer` refuses, or a prompt that the context or the cache
        has no room for; in a step, as `sampling.distribution`, for example if a logit is NaN.
    """
    prompt_ids = list(prompt_ids)
    stop_ids = lm.eos_ids if stop_ids is None else frozenset(stop_ids)
    _check(lm, prompt_ids, max_tokens, stop_ids, top_logprobs)
    if cache is None:
        cache = KVCache.empty(lm.config, _room_needed(lm, prompt_ids, max_tokens))
    elif cache.capacity < _room_needed(lm, prompt_ids, max_tokens):
        raise ValueError(
            f"cache must have room for {_room_needed(lm, prompt_ids, max_tokens)} positions, for the prompt and "
            f"max_tokens={max_tokens}, but has {cache.capacity}"
        )
    detokenizer = StreamingDetokenizer(lm.tokenizer, stop)
    return _steps(lm, prompt_ids, params, max_tokens, stop_ids, cache, detokenizer, top_logprobs, tap)


def _steps(
    lm: LanguageModel,
    prompt_ids: list[int],
    params: SamplingParams,
    max_tokens: int,
    stop_ids: Collection[int],
    cache: KVCache,
    detokenizer: StreamingDetokenizer,
    top_logprobs: int,
    tap: Tap | None,
) -> Iterator[Step]:
    """The loop itself: logits of the last position, a choice, its text, and one more pass for the chosen token."""
    rng = random.Random(params.seed)
    output_ids: list[int] = []
    if max_tokens:
        hidden = prefill(prompt_ids, lm.weights, cache, tap)
    while len(output_ids) < max_tokens:
        logits = report(tap, "logits", lm_head(hidden, lm.weights))[-1]
        choice = choose(logits, params, rng, prompt_ids, output_ids, top_logprobs)
        position = len(prompt_ids) + len(output_ids)
        output_ids.append(choice.id)
        piece = "" if choice.id in stop_ids else detokenizer.add(choice.id)
        at_end = _stop_reason(choice.id in stop_ids, len(output_ids) == max_tokens, position == _context(lm))
        if at_end:
            piece += detokenizer.finish()
        reason = "stop" if detokenizer.stopped is not None else at_end
        yield Step(**vars(choice), piece=piece, position=position, stop_reason=reason)
        if reason:
            return
        hidden = decode_step(choice.id, lm.weights, cache, tap)


def _stop_reason(is_end: bool, is_last: bool, is_full: bool) -> str | None:
    if is_end:
        return "eos"
    if is_last:
        return "length"
    return "context" if is_full else None


def _context(lm: LanguageModel) -> int:
    """The first position that a token may be chosen for but not go through the model."""
    return lm.config.max_position_embeddings


def _room_needed(lm: LanguageModel, prompt_ids: list[int], max_tokens: int) -> int:
    """Positions that go through the model: all but the last token of the response."""
    return min(len(prompt_ids) + max(max_tokens, 1) - 1, _context(lm))


def _check(
    lm: LanguageModel, prompt_ids: list[int], max_tokens: int, stop_ids: Collection[int], top_logprobs: int
) -> None:
    """Refuse what can't work before any of it is computed."""
    if not prompt_ids:
        raise ValueError(
            "prompt_ids must hold at least one token, but is empty: the first token needs something to follow"
        )
    for name, ids in (("prompt_ids", prompt_ids), ("stop_ids", stop_ids)):
        for index, id in enumerate(ids):
            if isinstance(id, bool) or not isinstance(id, int) or not 0 <= id < lm.config.vocab_size:
                raise ValueError(
                    f"{name} must hold integers in [0, {lm.config.vocab_size}), but has {id!r} at index {index}"
                )
    if len(prompt_ids) > _context(lm):
        raise ValueError(
            f"prompt_ids must fit the context of {_context(lm)} tokens, but has {len(prompt_ids)}: shorten it"
        )
    for name, number in (("max_tokens", max_tokens), ("top_logprobs", top_logprobs)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(f"{name} must be an integer of at least 0, but is {number!r}")
