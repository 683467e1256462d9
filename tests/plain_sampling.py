"""Sampling a second time, as plainly as possible: dictionaries, loops and floats, nothing shared with the package.

`plain_distribution` is what `sampling.distribution` is compared with, over random cases that `random_case` makes.
The tests run a fixed share of them; ``python -m benchmarks.exact_sampling`` runs 100,000.
"""

import itertools
import math
import random

import numpy as np
from scipy.stats import chisquare

from llm_internals.sampling import ORDERS, SamplingParams, distribution

SETTINGS = {
    "logit_bias": lambda rng, n: {
        token: rng.uniform(-4, 4) for token in rng.sample(range(n), rng.randint(1, min(3, n)))
    },
    "repetition_penalty": lambda rng, n: rng.uniform(0.5, 3),
    "frequency_penalty": lambda rng, n: rng.uniform(-2, 2),
    "presence_penalty": lambda rng, n: rng.uniform(-2, 2),
    "no_repeat_ngram_size": lambda rng, n: rng.randint(2, 4),
    "banned_ids": lambda rng, n: tuple(rng.sample(range(n), rng.randint(0, min(3, n - 1)))),
    "temperature": lambda rng, n: rng.choice([0.0, rng.uniform(0.05, 1), rng.uniform(1, 3)]),
    "top_k": lambda rng, n: rng.randint(0, n + 1),
    "top_p": lambda rng, n: rng.choice([0.0, rng.random(), rng.random(), 1.0]),
    "min_p": lambda rng, n: rng.choice([0.0, rng.random(), rng.random() / 10, 1.0]),
    "typical_p": lambda rng, n: rng.choice([0.0, rng.random(), rng.random(), 1.0]),
}
"""Each setting and how a random value of it is made, for a vocabulary of n."""

PAIRS = [(name,) for name in SETTINGS] + list(itertools.combinations(SETTINGS, 2))
"""Every single setting and every pair: 66."""

EXACT = 1e-12
"""Both sides are float64; their sums run in different orders over at most 40 terms, which is a few units of 1e-16."""

CHI_SQUARE_ALPHA = 1e-6
"""A right sampler fails one test in a million."""

DRAWS = 50_000


def plain_distribution(logits, settings, prompt, output, order):
    """Probability of each token, by the definitions."""
    left = {token: float(score) for token, score in enumerate(logits) if score > -math.inf}
    for name in order:
        if name in settings:
            left = OPERATORS[name](left, settings[name], list(prompt), list(output))
    if settings.get("temperature") == 0:
        left = {min(left, key=lambda token: (-left[token], token)): 0.0}
    probs = normalised(left)
    return [probs.get(token, 0.0) for token in range(len(logits))]


def normalised(left):
    top = max(left.values())
    weights = {token: math.exp(score - top) for token, score in left.items()}
    total = math.fsum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def bias(left, biases, prompt, output):
    return {token: score + biases.get(token, 0.0) for token, score in left.items()}


def repetition(left, penalty, prompt, output):
    changed = {}
    for token, score in left.items():
        if token in prompt + output:
            score = score / penalty if score > 0 else score * penalty
        changed[token] = score
    return changed


def frequency(left, penalty, prompt, output):
    return {token: score - penalty * output.count(token) for token, score in left.items()}


def presence(left, penalty, prompt, output):
    return {token: score - penalty * (token in output) for token, score in left.items()}


def ngrams(left, size, prompt, output):
    text = prompt + output
    seen = {tuple(text[start : start + size]) for start in range(len(text) - size + 1)}
    end = text[max(0, len(text) - size + 1) :]
    return {token: score for token, score in left.items() if (*end, token) not in seen}


def ban(left, ids, prompt, output):
    return {token: score for token, score in left.items() if token not in ids}


def temperature(left, t, prompt, output):
    return {token: score / t for token, score in left.items()} if t else left


def top_k(left, k, prompt, output):
    return {token: left[token] for token in sorted(left, key=lambda token: (-left[token], token))[: k or None]}


def top_p(left, p, prompt, output):
    probs = normalised(left)
    return reaching(p, left, probs, sorted(left, key=lambda token: (-probs[token], token)))


def min_p(left, fraction, prompt, output):
    probs = normalised(left)
    return {token: left[token] for token in left if probs[token] >= fraction * max(probs.values())}


def typical(left, mass, prompt, output):
    probs = normalised(left)
    entropy = -math.fsum(p * math.log(p) for p in probs.values() if p)
    distance = {token: abs(-math.log(p) - entropy) if p else math.inf for token, p in probs.items()}
    return reaching(mass, left, probs, sorted(left, key=lambda token: (distance[token], token)))


def reaching(mass, left, probs, ranked):
    if mass == 1:
        return left
    kept, total = {}, 0.0
    for token in ranked:
        kept[token] = left[token]
        total += probs[token]
        if total >= mass:
            break
    return kept


OPERATORS = dict(
    zip(
        SETTINGS,
        [bias, repetition, frequency, presence, ngrams, ban, temperature, top_k, top_p, min_p, typical],
        strict=True,
    )
)


def random_case(rng, names, orders):
    """Logits (some rounded, so that there are ties; some -inf), settings for these names, a history and an order."""
    n = rng.randint(2, 40)
    spread = rng.choice([0.5, 2, 8])
    logits = [rng.gauss(3, spread) for _ in range(n)]
    if rng.random() < 0.2:
        logits = [round(score) for score in logits]
    if rng.random() < 0.2:
        logits = [-math.inf if rng.random() < 0.2 and token else score for token, score in enumerate(logits)]
    prompt, output = ([rng.randrange(n) for _ in range(rng.randint(0, 12))] for _ in range(2))
    order = list(orders[rng.randrange(len(orders))])
    if rng.random() < 0.5:
        rng.shuffle(order)
    return logits, {name: SETTINGS[name](rng, n) for name in names}, prompt, output, tuple(order)


def difference(case):
    """Compare the package with the plain way: None if they agree, else what differs."""
    logits, settings, prompt, output, order = case
    try:
        plain = plain_distribution(logits, settings, prompt, output, order)
    except ValueError:
        plain = None  # nothing was left: max() of an empty dictionary
    try:
        probs = distribution(logits, SamplingParams(**settings, order=order), prompt, output).tolist()
    except ValueError:
        probs = None
    if plain is None or probs is None:
        return None if plain is probs else f"one side has nothing left: {case}"
    if [p > 0 for p in plain] != [p > 0 for p in probs]:
        return f"different sets: {case}"
    largest = max(abs(a - b) for a, b in zip(plain, probs, strict=True))
    return None if largest <= EXACT else f"probabilities differ by {largest}: {case}"


def compare(seed, n_cases):
    """All differences in ``n_cases`` random cases, which go round all single settings and pairs of them."""
    rng, orders = random.Random(seed), list(ORDERS.values())
    cases = (random_case(rng, PAIRS[index % len(PAIRS)], orders) for index in range(n_cases))
    return [found for found in map(difference, cases) if found]


def chi_square(counts, probs):
    """The p-value of the counts of drawn tokens under the probabilities, tokens expected less than 5 times pooled."""
    counts, expected = np.asarray(counts), np.asarray(probs) * np.sum(counts)
    assert counts[expected == 0].sum() == 0, "a token of probability 0 was drawn"
    often = expected >= 5
    pooled = [np.append(part[often], part[~often].sum()) for part in (counts, expected)]
    keep = pooled[1] > 0
    return chisquare(pooled[0][keep], pooled[1][keep]).pvalue if keep.sum() > 1 else 1.0


DISTRIBUTIONS = [
    {},
    {"top_k": 8},
    {"top_k": 16},
    {"top_p": 0.7},
    {"top_p": 0.99},
    {"top_k": 8, "top_p": 0.9},
    {"top_k": 4, "top_p": 0.5},
]
"""The settings of the draws; all but the first are those of vLLM's own test of its sampler."""
