"""Sampling compared with the plain definitions at length: what the tests do with a small share of the cases.

``python -m benchmarks.exact_sampling`` compares 100,000 random cases (every setting alone and every pair, in the orders
of the engines and in shuffled ones), and draws 50,000 tokens one by one for 7 settings, 3 seeds and both ways to draw.
It takes about two minutes.
"""

import itertools
import random
import sys
import time

import numpy as np

from llm_internals.sampling import SamplingParams, distribution, draw, gumbel_max
from tests.plain_sampling import CHI_SQUARE_ALPHA, DISTRIBUTIONS, DRAWS, chi_square, compare

WAYS = {"inverse CDF": lambda probs, rng: draw(probs, rng.random()), "Gumbel-max": gumbel_max}


def exactness(n_cases: int) -> bool:
    """Print how many random cases differ from the plain definitions; return whether none does."""
    start = time.perf_counter()
    found = compare(seed=2, n_cases=n_cases)
    print(f"{n_cases:,} cases: {len(found)} differ ({time.perf_counter() - start:.0f} s)", *found[:3], sep="\n")
    return not found


def draws(name: str) -> bool:
    """Print the lowest p-value of the chi-square tests of one way to draw; return whether it is high enough."""
    start = time.perf_counter()
    p_values = []
    for config, seed in itertools.product(DISTRIBUTIONS, range(3)):
        rng = random.Random(seed)
        probs = distribution(np.random.default_rng(seed).normal(0, 2, 32), SamplingParams(**config))
        counts = np.bincount([WAYS[name](probs, rng) for _ in range(DRAWS)], minlength=32)
        p_values.append(chi_square(counts, probs))
    seconds = time.perf_counter() - start
    print(f"{name}: {len(p_values)} tests of {DRAWS:,} draws, lowest p-value {min(p_values):.2g} ({seconds:.0f} s)")
    return min(p_values) > CHI_SQUARE_ALPHA


if __name__ == "__main__":
    sys.exit(0 if all([exactness(100_000), *map(draws, WAYS)]) else 1)
