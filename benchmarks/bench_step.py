"""Where the time of a decode step goes: the model, choosing a token, its text; and what each position of context adds.

``python -m benchmarks.bench_step`` prints, for float32 and packed weights, the share of a step that isn't the model,
and how the time of a step grows with the context beside what the keys and values explain: their bytes, at the speed at
which attention's products read them here, measured in the same run.
Read the ratios: milliseconds are those of this machine at this moment.
"""

import random

import numpy as np
import torch

from benchmarks.timing import interleaved
from llm_internals import load_checkpoint
from llm_internals.attention import attention_scores, weighted_values
from llm_internals.checkpoint import LanguageModel
from llm_internals.choice import choose
from llm_internals.cost import kv_bytes
from llm_internals.detokenizer import StreamingDetokenizer
from llm_internals.generate import Step
from llm_internals.kv_cache import KVCache
from llm_internals.logits import lm_head
from llm_internals.model import decode_step, prefill
from llm_internals.sampling import SamplingParams

THREADS = 2
ROUNDS = 40
PROMPT = "Once upon a time, there was a"
CONTEXTS = (64, 256, 448, 640, 832, 1024)
SETTINGS = {
    "greedy": {"temperature": 0.0},
    "T .7, top-k 50, top-p .9": {"temperature": 0.7, "top_k": 50, "top_p": 0.9},
    "T 1": {},
}


def main() -> None:
    """Print both tables."""
    torch.set_num_threads(THREADS)
    models = {"packed": load_checkpoint(weights="packed"), "float32": load_checkpoint()}
    share(models)
    context(models)


def share(models: dict[str, LanguageModel]) -> None:
    """Print what choosing a token, turning it into text and making its `Step` cost beside the model's part."""
    print(f"{'setting':26}{'choice, text and record, ms':>29}{'of a packed step':>18}{'of a float32 step':>19}")
    for name, settings in SETTINGS.items():
        ways = {form: model_part(lm) for form, lm in models.items()}
        ways["rest"] = rest_of_step(models["packed"], SamplingParams(**settings))
        times = {way: 1000 * taken.median for way, taken in interleaved(ways, ROUNDS).items()}
        shares = [times["rest"] / (times["rest"] + times[form]) for form in ("packed", "float32")]
        print(f"{name:26}{times['rest']:29.2f}{shares[0]:18.1%}{shares[1]:19.1%}")


def model_part(lm: LanguageModel, context: int = 64):
    """A call that sends one token through the model, behind ``context`` positions, and scores the next."""
    ids = random.Random(0).choices(range(300, 40_000), k=context)
    cache = KVCache.empty(lm.config, context + 1)
    prefill(ids, lm.weights, cache)

    def step() -> torch.Tensor:
        cache.truncate(context)
        return lm_head(decode_step(ids[-1], lm.weights, cache), lm.weights)

    return step


def rest_of_step(lm: LanguageModel, params: SamplingParams):
    """A call that does the rest: logits to id, id to text, and the record that `generate` yields."""
    prompt_ids = lm.tokenizer.encode(PROMPT)
    hidden = prefill(prompt_ids, lm.weights, KVCache.empty(lm.config, len(prompt_ids)))
    logits, rng, detokenizer = lm_head(hidden, lm.weights)[-1], random.Random(0), StreamingDetokenizer(lm.tokenizer)

    def rest() -> Step:
        choice = choose(logits, params, rng, prompt_ids, [])
        return Step(**vars(choice), piece=detokenizer.add(choice.id), position=len(prompt_ids), stop_reason=None)

    return rest


def context(models: dict[str, LanguageModel]) -> None:
    """Print the time of a step at several lengths, the slope, and the slope that the bytes of the cache explain."""
    speed = attention_bandwidth(models["float32"])
    explained = kv_bytes(models["float32"].config) / speed / 1e6  # ms a position
    print(f"\n{'':10}" + "".join(f"{length:>8}" for length in CONTEXTS) + "   positions of context")
    for form, lm in models.items():
        taken = interleaved({str(length): model_part(lm, length) for length in CONTEXTS}, ROUNDS)
        times = [1000 * step.median for step in taken.values()]
        slope = np.polyfit(CONTEXTS, times, 1)[0]
        print(f"{form:10}" + "".join(f"{step:8.1f}" for step in times) + "   ms a step")
        print(f"{'':10}slope {1000 * slope:.2f} us a position, {slope / explained:.2f} of what its bytes explain")
    print(f"attention's products read {speed:.1f} GB/s here: {1000 * explained:.2f} us a position")


def attention_bandwidth(lm: LanguageModel) -> float:
    """GB a second at which scores and weighted values read keys and values, going through all layers as a step does.

    The difference between a long and a short context, so that what a call costs by itself cancels.
    """
    config = lm.config
    cache = KVCache.empty(config, max(CONTEXTS))
    for tensor in (cache.keys, cache.values):
        tensor.normal_(generator=torch.Generator().manual_seed(0))
    q = torch.randn(config.num_attention_heads, 1, config.head_dim)

    def products(length: int):
        pattern = torch.full((config.num_attention_heads, 1, length), 1 / length)

        def run() -> None:
            for keys, values in zip(cache.keys, cache.values, strict=True):
                attention_scores(q, keys[:, :length])
                weighted_values(pattern, values[:, :length])

        return run

    with torch.inference_mode():
        taken = interleaved({str(length): products(length) for length in (CONTEXTS[0], CONTEXTS[-1])}, ROUNDS)
    short, long = (step.median for step in taken.values())
    return kv_bytes(config) * (CONTEXTS[-1] - CONTEXTS[0]) / (long - short) / 1e9


if __name__ == "__main__":
    main()
