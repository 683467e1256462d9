"""The exercises of ``06_detokenization``: a spelling to read, a tail to hold back, ids that no text has."""

from collections.abc import Callable, Sequence

from llm_internals.byte_alphabet import unspell
from llm_internals.tokenizer import Tokenizer

SPELLING = "ĠâĢĶ"
"""Exercise 1: a token as a vocabulary's file spells it."""
CASES = (
    ("", "aab"),
    ("b", "aab"),
    ("ba", "aab"),
    ("aa", "aab"),
    ("aaa", "aab"),
    ("aaa", "b"),
    ("step and st", "stop"),
    ("\nHello in Sp", "\nHello in Spanish"),
    ("nana", "nanas"),
    ("banan", "nano"),
    ("ana ana", "ana ana ana"),
    ("ababab", "abc"),
)
"""Exercise 2: texts so far, and stop strings that aren't in them yet."""

Held = Callable[[str, str], int]


def check_spelling(answer: str | None) -> str:
    """Exercise 1: whether `answer` is the text of the token that is spelt `SPELLING`.

    >>> check_spelling("ĠâĢĶ")
    'Not yet: that is the spelling itself, a character for each byte; find the bytes first.'
    """
    if answer is None:
        return "No answer yet: set answer to a string."
    if answer == SPELLING:
        return "Not yet: that is the spelling itself, a character for each byte; find the bytes first."
    if answer == read_spelling():
        return "Right: these bytes, read as UTF-8."
    if answer == read_spelling().strip():
        return "Not yet: the bytes after the first are read right, but Ġ stands for a byte as well."
    given = answer.encode(errors="replace").hex(" ")
    return f"Not yet: your text has the bytes {given}, the token has {unspell(SPELLING)[0]:02x} first and 4 in all."


def read_spelling() -> str:
    """In the square of bytes, Ġ stands at 20, â at e2, Ģ at 80 and Ķ at 94; the last three are one character."""
    return bytes.fromhex("20 e2 80 94").decode()


def check_held(answer: Held | None) -> str:
    """Exercise 2: whether a function of (text, stop) tells how many characters at the end of the text have to wait.

    >>> check_held(lambda text, stop: 0)
    "Not yet: for the text 'ba' and the stop string 'aab' it lets 'a' go, from which the stop string may still grow."
    """
    if answer is None:
        return "No answer yet: set answer to a function of text and stop."
    for text, stop in CASES:
        given, right = answer(text, stop), held(text, stop)
        if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= len(text):
            return f"Not yet: for the text {text!r} and the stop string {stop!r} it returns {given!r}, no length in it."
        if given != right:
            case = f"for the text {text!r} and the stop string {stop!r} it"
            if given < right:
                return f"Not yet: {case} lets {text[-right:]!r} go, from which the stop string may still grow."
            return f"Not yet: {case} holds back {text[-given:]!r}, with which the stop string doesn't begin."
    return "Right: what may become the stop string waits, and nothing else does."


def held(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a beginning of `stop`, but not all of it."""
    lengths = range(min(len(text), len(stop) - 1), -1, -1)
    return next(length for length in lengths if text.endswith(stop[:length]))


def check_ids_without_a_text(answer: Sequence[int] | None, tokenizer: Tokenizer) -> str:
    """Exercise 3: whether `answer` holds ordinary ids that are text, and to which no text is encoded.

    >>> from llm_internals.tokenizer import train_bpe
    >>> check_ids_without_a_text([64, 64], train_bpe("ab", 257))
    "Not yet: encode('aa') gives [64, 64], the same ids."
    """
    if answer is None:
        return "No answer yet: set answer to a list of ids."
    ids = [int(id) for id in answer]
    if not ids or not all(0 <= id < tokenizer.vocab_size for id in ids):
        return f"Not yet: a list of at least one id in 0 .. {tokenizer.vocab_size - 1} is asked for."
    if set(ids) & set(tokenizer.special_tokens.values()):
        return "Not yet: one of these ids is a special token, to which no text is encoded anyway; leave it out."
    try:
        text = tokenizer.decode_bytes(ids).decode()
    except UnicodeDecodeError:
        return "Not yet: these ids aren't text; their bytes, joined, have to be whole characters."
    if tokenizer.encode(text) == ids:
        return f"Not yet: encode({text!r}) gives {ids}, the same ids."
    return f"Right: decode gives {text!r}, and encode makes {tokenizer.encode(text)} of it."


def ids_without_a_text(tokenizer: Tokenizer) -> list[int]:
    """The letters of a word that is one token: they decode to the word, and encoding merges them.

    A loop that encoded its own text would go on from other ids than those that the model drew.
    """
    return [id for letter in " the" for id in tokenizer.encode(letter)]
