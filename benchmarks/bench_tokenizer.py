"""What tokenizing costs: the package beside tiktoken and tokenizers, and training beside counting everything anew.

``python -m benchmarks.bench_tokenizer`` prints medians over interleaved rounds on the sources of Python's library.
Read the ratios: seconds are those of this machine at this moment.
"""

import random
import resource
from collections import Counter
from collections.abc import Callable
from itertools import islice, pairwise

from benchmarks.timing import interleaved, seconds
from llm_internals.bpe_training import learn_merges
from llm_internals.gguf import read_gguf
from llm_internals.model_metadata import read_tokenizer
from llm_internals.tokenizer import Tokenizer
from llm_internals.weights_file import find_weights
from tests.reference_tokenizers import hugging_face_tokenizer, library_text, train_with_hugging_face

MEGABYTE = 1_000_000
N_MERGES = 2_000
N_TIMED_BY_DEFINITION = 20
"""Merges of the slow way that are timed: each takes it about as long, so the rest is extrapolated."""
ROUNDS = 5


def main() -> None:
    """Print the tables."""
    file = read_gguf(find_weights(None))
    tokenizer = read_tokenizer(file)
    grow(tokenizer)  # first, while the process is small
    train(tokenizer)
    encode(tokenizer, file.metadata["tokenizer.ggml.tokens"], file.metadata["tokenizer.ggml.merges"])


def train(tokenizer: Tokenizer) -> None:
    """Print the time of training to 2,000 merges on 1 MB."""
    pieces = tokenizer.split.split(library_text(MEGABYTE))
    ours = seconds(lambda: list(islice(learn_merges(pieces), N_MERGES)))
    theirs = seconds(lambda: train_with_hugging_face(library_text(MEGABYTE), N_MERGES))
    part = seconds(lambda: learn_by_definition(pieces, N_TIMED_BY_DEFINITION))
    by_definition = part / N_TIMED_BY_DEFINITION * N_MERGES
    print(f"\ntraining, 1 MB to {N_MERGES:,} merges        seconds     ours is faster by")
    print(f"  ours                                 {ours:7.2f}")
    print(f"  tokenizers (compiled)                {theirs:7.2f}     {theirs / ours:8.2f}")
    print(
        f"  all pairs counted at each merge      {by_definition:7.0f}     {by_definition / ours:8.0f}   (extrapolated)"
    )


def encode(tokenizer: Tokenizer, tokens: list[str], merges: list[str]) -> None:
    """Print the speed of encoding 4 MB, the first time and with the words of the text in the cache."""
    text = library_text(4 * MEGABYTE)
    encoding = tokenizer.to_tiktoken()
    reference = hugging_face_tokenizer(tokens, merges)
    first = seconds(lambda: tokenizer.encode(text))
    ways: dict[str, Callable[[], object]] = {
        "ours": lambda: tokenizer.encode(text),
        "tiktoken": lambda: encoding.encode_ordinary(text),
        "tokenizers": lambda: reference.encode(text),
    }
    times = {name: taken.median for name, taken in interleaved(ways, ROUNDS).items()}
    print("\nencoding 4 MB                             MB / s     against ours")
    print(f"  ours, words seen for the first time  {4 / first:7.2f}")
    for name, time_taken in times.items():
        print(f"  {name:37}{4 / time_taken:7.2f}     {times['ours'] / time_taken:8.2f}")


def grow(tokenizer: Tokenizer) -> None:
    """Print time and memory for one piece of up to two million letters."""
    start = peak_megabytes()
    print("one piece of n letters            n     seconds     time(n) / time(n/2)     peak memory, MB above the start")
    letters = random.Random(0).choices("abcdefghijklmnopqrstuvwxyz", k=2 * MEGABYTE)
    for name, text in {"equal": "x" * 2 * MEGABYTE, "random": "".join(letters)}.items():
        before = None
        for n in (MEGABYTE // 2, MEGABYTE, 2 * MEGABYTE):
            now = seconds(lambda text=text, n=n: tokenizer.encode(text[:n]))
            ratio = f"{now / before:.2f}" if before else ""
            print(f"  {name:22}{n:11,}{now:12.2f}{ratio:>24}{peak_megabytes() - start:20.0f}")
            before = now


def learn_by_definition(pieces: list[str], n_merges: int) -> list[tuple[int, int]]:
    """Train as minbpe does: count every pair, merge the most frequent one everywhere, start again."""
    words = [list(piece.encode()) for piece in pieces]
    merges = []
    for new_id in range(256, 256 + n_merges):
        counts: Counter[tuple[int, int]] = Counter()
        for word in words:
            counts.update(pairwise(word))
        pair = max(counts, key=counts.__getitem__)
        words = [merged(word, pair, new_id) for word in words]
        merges.append(pair)
    return merges


def merged(word: list[int], pair: tuple[int, int], new_id: int) -> list[int]:
    """Put the new id in place of each pair."""
    result, i = [], 0
    while i < len(word):
        if word[i] == pair[0] and i + 1 < len(word) and word[i + 1] == pair[1]:
            result.append(new_id)
            i += 2
        else:
            result.append(word[i])
            i += 1
    return result


def peak_megabytes() -> float:
    """Return the most memory that this process has had (Linux counts in kilobytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000


if __name__ == "__main__":
    main()
