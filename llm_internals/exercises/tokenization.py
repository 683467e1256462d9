"""The exercises of ``01_tokenization``: merges on paper, a word that its space decides, cuts that change no id."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice, pairwise

from llm_internals.bpe_training import learn_merges
from llm_internals.pretokenizer import PRETOKENIZERS, Pretokenizer
from llm_internals.tokenizer import Tokenizer, train_bpe

SENTENCE = "bubble bubble hubbub"
"""Exercise 1: the text to train on."""
MERGES = 3
PIECES = 4
"""Exercise 2: how many tokens the word must have without its space, at least."""
SIZE = 20
"""Exercise 3: how many characters a chunk may have in the check."""
TEXTS = (
    "The quick brown fox doesn't jump over 2024 lazy dogs, it walks around them.",
    "def total(rows):\n    return sum(rows)\n\n\n        # eight spaces before this\n",
    "columns   12\nof        7\nnumbers   1024",
    "A first paragraph.\n\nA second one that is longer.\n\nAnd one more.",
    "Привет, мир! 你好，世界。 👩‍👩‍👧 naïve café",
)
"""Exercise 3: what is cut in the check."""

Chunker = Callable[[str, int, Pretokenizer], Sequence[str]]


def check_three_merges(answer: Sequence[str] | None) -> str:
    """Exercise 1: whether `answer` holds the first `MERGES` tokens that BPE learns from `SENTENCE`, in order.

    >>> check_three_merges(["bb", "ub", "le"])
    "Not yet: for merge 1, 'bb' stands 3 times in the text as merged so far, but another pair stands 4 times."
    """
    if answer is None:
        return "No answer yet: set answer to a list of three strings."
    if isinstance(answer, str) or len(answer) != MERGES:
        return f"Not yet: the answer is a list of {MERGES} strings, the first one first."
    for number, (given, right) in enumerate(zip(answer, three_merges(), strict=True), start=1):
        if given != right:
            return f"Not yet: for merge {number}, {_complaint(given, number - 1)}"
    return "Right: these three, in this order."


def _complaint(given: str, done: int) -> str:
    """What is wrong with a token as the next one after `done` merges."""
    split = PRETOKENIZERS["gpt-2"]
    tokenizer = train_bpe(SENTENCE, 256 + done, split=split)
    pairs: Counter[str] = Counter()
    for piece in split.split(SENTENCE):
        tokens = [tokenizer.decode([id]) for id in tokenizer.encode(piece)]
        pairs.update(left + right for left, right in pairwise(tokens))
    here = f"{given!r} stands {pairs[given]} times in the text as merged so far"
    if not pairs[given]:
        return f"no two neighbours make {given!r} in the text as merged so far."
    if pairs[given] < max(pairs.values()):
        return f"{here}, but another pair stands {max(pairs.values())} times."
    return f"{here}, and another pair as often: the rule for ties takes that one."


def three_merges() -> list[str]:
    """Let the package train on the sentence, cut as GPT-2 cuts it."""
    pieces = PRETOKENIZERS["gpt-2"].split(SENTENCE)
    return [merge.token.decode() for merge in islice(learn_merges(pieces), MERGES)]


def check_space_word(answer: str | None, tokenizer: Tokenizer) -> str:
    """Exercise 2: whether a word is one token after a space, and `PIECES` tokens or more without one."""
    if answer is None:
        return "No answer yet: set answer to a word."
    if not answer.isalpha():
        return "Not yet: the word must be made of letters alone, without the space."
    with_space, without = len(tokenizer.encode(f" {answer}")), len(tokenizer.encode(answer))
    counts = f"{with_space} after a space and {without} without one"
    if with_space == 1 and without >= PIECES:
        return f"Right: the number of tokens is {counts}."
    return f"Not yet: the number of tokens is {counts}, where it should be 1 and {PIECES} or more."


def space_word(tokenizer: Tokenizer) -> str:
    """Ask every token of the vocabulary that is a space and letters how it is cut without the space.

    In running text a word in small letters nearly always stands behind a space, and there its merges were counted.
    """
    tokens = [tokenizer.decode([id]) for id in range(tokenizer.vocab_size)]
    words = [token[1:] for token in tokens if token[0] == " " and token[1:].isalpha()]
    return max(words, key=lambda word: len(tokenizer.encode(word)))


def check_safe_chunks(answer: Chunker | None, tokenizer: Tokenizer) -> str:
    """Exercise 3: whether a function of (text, size, split) cuts texts into chunks that change no id."""
    if answer is None:
        return "No answer yet: set answer to a function of text, size and split."
    for text in TEXTS:
        chunks = list(answer(text, SIZE, tokenizer.split))
        if "".join(chunks) != text:
            return f"Not yet: joined, the chunks of {text!r} are {''.join(chunks)!r}."
        if longest := [chunk for chunk in chunks if len(chunk) > SIZE]:
            return f"Not yet: the chunk {longest[0]!r} has more than {SIZE} characters."
        if [id for chunk in chunks for id in tokenizer.encode(chunk)] != tokenizer.encode(text):
            return f"Not yet: the ids of {text!r} changed. The chunks were {chunks}."
        if len(chunks) > 2 * (len(text) // SIZE + 1):
            return f"Not yet: {len(chunks)} chunks are more than {text!r} needs at {SIZE} characters each."
    return "Right: cut there, every chunk can be encoded by itself."


def safe_chunks(text: str, size: int, split: Pretokenizer) -> list[str]:
    """Cut between pieces, since no merge crosses their border, but not behind white space: there the split looks ahead.

    (``"\\n\\n"`` is two pieces before a letter and one at the end of a chunk.)
    """
    units: list[str] = []
    for piece in split.split(text):
        if units and units[-1][-1].isspace():
            units[-1] += piece
        else:
            units.append(piece)
    chunks = [""]
    for unit in units:
        if chunks[-1] and len(chunks[-1]) + len(unit) > size:
            chunks.append("")
        chunks[-1] += unit
    return chunks
