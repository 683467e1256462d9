"""One engine in a process of its own: ``python -m benchmarks.engine_process ENGINE STARTED FOLDER`` prints JSON.

STARTED is the clock (`time.time`) just before the process was made, so that the time to the first token counts the
imports too. FOLDER holds the weights as transformers likes them best; `bench_engines` makes it.
The model is the same file for all but the arithmetic: llama.cpp and our packed form read its 4 bits, transformers and
our float32 form the float32 numbers that these bits stand for.
"""

import json
import os
import sys
import time
from collections.abc import Callable

THREADS = 2
PROMPT_IDS = [504, 3575, 282, 5345, 314, 260, 6400, 281]
PREFILL_IDS = [(7919 * position) % 48_000 + 300 for position in range(512)]
DECODED = 64
REPEATS = 3

Measurement = dict[str, float | list[float]]


def transformers(folder: str, started: float) -> Measurement:
    """`generate` in float32, from a folder of safetensors, with the attention that it chooses itself."""
    import torch
    from transformers import AutoModelForCausalLM, logging

    logging.disable_progress_bar()
    torch.set_num_threads(THREADS)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

    def generate(n: int) -> None:
        ids = torch.tensor([PROMPT_IDS])
        model.generate(ids, do_sample=False, min_new_tokens=n, max_new_tokens=n)

    def prefill() -> None:
        with torch.inference_mode():
            model(torch.tensor([PREFILL_IDS]), use_cache=True, logits_to_keep=1)

    return measure(generate, prefill, started)


def ours(weights: str, started: float) -> Measurement:
    """`generate.generate`, with all that it reports of a step."""
    import torch

    from llm_internals import load_checkpoint
    from llm_internals.generate import generate as steps
    from llm_internals.kv_cache import KVCache
    from llm_internals.logits import lm_head
    from llm_internals.model import prefill as fill
    from llm_internals.sampling import SamplingParams

    torch.set_num_threads(THREADS)
    lm = load_checkpoint(weights=weights)

    def generate(n: int) -> None:
        for _ in steps(lm, PROMPT_IDS, SamplingParams(temperature=0), max_tokens=n, stop_ids=()):
            pass

    def prefill() -> None:
        cache = KVCache.empty(lm.config, len(PREFILL_IDS))
        lm_head(fill(PREFILL_IDS, lm.weights, cache), lm.weights)

    return measure(generate, prefill, started)


def llama_cpp(folder: str, started: float) -> Measurement:
    """llama.cpp on the file itself, through its Python binding's thin layer: evaluate, and take the largest logit."""
    import llama_cpp as binding
    import numpy as np

    from llm_internals.weights_file import find_weights

    llm = binding.Llama(
        str(find_weights()), n_ctx=1024, n_batch=512, n_threads=THREADS, n_threads_batch=THREADS, verbose=False
    )

    def largest() -> int:
        return int(np.ctypeslib.as_array(binding.llama_get_logits(llm.ctx), (llm.n_vocab(),)).argmax())

    def generate(n: int) -> None:
        llm.reset()
        llm.eval(PROMPT_IDS)
        for _ in range(n - 1):
            llm.eval([largest()])
        largest()

    def prefill() -> None:
        llm.reset()
        llm.eval(PREFILL_IDS)

    return measure(generate, prefill, started)


def measure(generate: Callable[[int], None], prefill: Callable[[], None], started: float) -> Measurement:
    """Seconds from the start of the process to the first token; then milliseconds a further token and a prefill."""
    generate(1)
    first_token = time.time() - started
    decode, prefills = [], []
    for _ in range(REPEATS):
        one, many = seconds(lambda: generate(1)), seconds(lambda: generate(1 + DECODED))
        decode.append(1000 * (many - one) / DECODED)
        prefills.append(1000 * seconds(prefill))
    return {"first_token_s": [first_token], "decode_ms": decode, "prefill_512_ms": prefills}


def seconds(run: Callable[[], None]) -> float:
    """Time one call; here, since importing more would count as part of the start."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


ENGINES: dict[str, Callable[[str, float], Measurement]] = {
    "transformers": transformers,
    "ours, float32": lambda folder, started: ours("float32", started),
    "ours, packed": lambda folder, started: ours("packed", started),
    "llama.cpp": llama_cpp,
}

if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = str(THREADS)  # before any library reads it
    name, begun, where = sys.argv[1:]
    print(json.dumps(ENGINES[name](where, float(begun))))
