"""What the tokenizer's tests and `benchmarks/peers_tokenizer.py` compare with, and the strings to compare on.

Engines carry different versions of the Unicode tables, so on code points that are new to one of them they may cut a
text differently. The strings here use only code points assigned in Unicode 14, listed in
``data/tokenizer_unicode14.json``, whatever the Python that runs them.
"""

import json
import random
import sysconfig
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import jaxtyping
import tiktoken
import tokenizers
from tiktoken_ext import openai_public
from tokenizers import AddedToken, models, pre_tokenizers, trainers

from llm_internals.tokenizer import Tokenizer

DATA = Path(__file__).parent / "data"


def load_data(name: str) -> dict:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


@contextmanager
def without_type_checks() -> Iterator[None]:
    """Leave out the type checks of the test run, a tenth of a millisecond each, where calls are many or are timed."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def hugging_face_tokenizer(
    tokens: Sequence[str], merges: Sequence[str], special_ids: Collection[int] = ()
) -> tokenizers.Tokenizer:
    """Build SmolLM2's tokenizer as its ``tokenizer.json`` says, of the lists in the GGUF file.

    Special tokens are found in text only if their ids are given.
    (transformers' own reader of GGUF tokenizers loses the split of digits.)
    """
    model = models.BPE({token: id for id, token in enumerate(tokens)}, [tuple(merge.split(" ")) for merge in merges])
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = smollm_split()
    tokenizer.add_special_tokens([AddedToken(tokens[id], special=True, normalized=False) for id in special_ids])
    return tokenizer


def smollm_split() -> pre_tokenizers.Sequence:
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def tiktoken_of(tokenizer: Tokenizer) -> tiktoken.Encoding:
    """Give tiktoken the ranks of a tokenizer, and the pattern of its own package where it has that vocabulary.

    (The package's constructors would download the ranks, so that step is left out.)
    """
    ranks = {tokenizer.token_bytes(id): id for id in range(tokenizer.vocab_size)}
    name = {100_256: "cl100k_base", 199_998: "o200k_base"}.get(tokenizer.vocab_size)
    pattern = tokenizer.split.pattern
    if name:
        with mock.patch.object(openai_public, "load_tiktoken_bpe", return_value={}):
            pattern = openai_public.ENCODING_CONSTRUCTORS[name]()["pat_str"]
    return tiktoken.Encoding(name or "other", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def train_with_hugging_face(text: str, n_merges: int) -> list[tuple[str, str]]:
    """Return the merges that Hugging Face's trainer finds with SmolLM2's split, in the printable spelling."""
    reference = tokenizers.Tokenizer(models.BPE())
    reference.pre_tokenizer = smollm_split()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=256 + n_merges, initial_alphabet=alphabet, show_progress=False)
    reference.train_from_iterator([text], trainer)
    return [tuple(merge) for merge in json.loads(reference.to_str())["model"]["merges"]]


def library_text(size: int) -> str:
    """Return the first characters of Python's own library, a text that is installed everywhere."""
    text = ""
    for source in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" not in source.parts and "lib2to3" not in source.parts and "test" not in source.parts:
            text += source.read_text(encoding="utf-8")
        if len(text) >= size:
            return text[:size]
    raise ValueError(f"size must be at most {len(text)}, what Python's library has, got {size}")


def unicode14() -> list[str]:
    """All characters assigned in Unicode 14 but the surrogates."""
    ranges = load_data("tokenizer_unicode14.json")["ranges"]
    return [chr(code) for first, last in ranges for code in range(first, last + 1)]


# What split patterns treat differently: contractions in both cases (the long s counts as an s), digits that are not
# 0-9, white space of every kind, letters of every case category, marks, signs that take a line break with them.
DIFFICULT = [
    *"aAbsStTdm'' 0129½१Ⅵ²  \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u2003\u2028\u3000ſǅʰªé中ا\u0301\u200d_-/.!?<|>#°€",
    *[
        "'s",
        "'S",
        "'ll",
        "'LL",
        "'re",
        "'ve",
        "’s",
        " the",
        "  ",
        "    ",
        "\r\n",
        "\n\n",
        "🦙",
        "👩‍👧",
        "🇫🇷",
        "été",
        "日本語",
    ],
]


def random_texts(
    seed: int, count: int, encodable: Callable[[str], bool], extra: Sequence[str] = (), longest: int = 24
) -> Iterator[str]:
    """Yield strings of 1 to ``longest`` parts: difficult ones, any character of Unicode 14, and ``extra``.

    Parameters
    ----------
    encodable : callable
        Characters for which it is False are not used.
    """
    rng = random.Random(seed)
    characters = [character for character in unicode14() if encodable(character)]
    pools = [[part for part in DIFFICULT if encodable(part)], characters] + ([list(extra)] if extra else [])
    for _ in range(count):
        length = rng.randint(1, longest)
        yield "".join(rng.choice(pools[0] if rng.random() < 0.6 else rng.choice(pools)) for _ in range(length))
