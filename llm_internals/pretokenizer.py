"""Stage 1, text to ids: str -> pieces, inside which alone tokens are merged.

A byte-pair encoder never merges across the border of two pieces, so the split decides as much as the merges do: whether
``2024`` is one token or four digits, whether a space belongs to the word after it, whether ``DON'T`` splits like
``don't``.
Each model has its own pattern, and ids are wrong wherever another one is used.

Leaves out: normalisation (none of these models normalises text) and special tokens (see `tokenizer`).
Chapter: ``01_tokenization``.
Source: the patterns are data of the models; each is cited where it stands. ``\\s``, ``\\p{L}`` and ``\\p{N}`` are
Unicode's White_Space, Letter and Number as the ``regex`` package has them; two engines can differ on code points that
one of them does not know yet, so `requirements.txt` pins the package.
"""

from dataclasses import dataclass
from functools import cached_property

import regex

# openai/gpt-2, src/encoder.py, Encoder.pat: a contraction, or letters, digits or other signs with at most one space in
# front, or white space. A run of white space leaves its last character to the word after it.
_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

# HuggingFaceTB/SmolLM2, tokenizer.json, pre_tokenizer: Digits(individual_digits=True), then ByteLevel with GPT-2's
# pattern on what is left between the digits. Said in one pattern: a number character is a piece of its own, without a
# space, and white space in front of one ends its stretch of text and so stays whole.
_SMOLLM = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?=\p{N})|\s+(?!\S)|\s+"

# meta-llama/llama3, llama/tokenizer.py, Tokenizer.pat_str: contractions in either case, at most three digits a piece,
# one sign of any kind in front of a word, line breaks with the signs before them.
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Pretokenizer:
    """A split pattern, and what the model does with a piece that is a whole token.

    Parameters
    ----------
    pattern : str
        A regular expression (``regex`` syntax, no capturing groups) whose matches cover every text.
    whole_pieces : bool
        True if a piece that is itself in the vocabulary becomes that token without a look at the merges
        (tiktoken; ``ignore_merges`` in Hugging Face's BPE and in llama.cpp).
    """

    pattern: str
    whole_pieces: bool = False

    @cached_property
    def _compiled(self) -> regex.Pattern:
        return regex.compile(self.pattern)

    def split(self, text: str) -> list[str]:
        """Return the pieces of a text in order; joined, they are the text.

        Raises
        ------
        ValueError
            The pattern skips a part of the text.

        >>> PRETOKENIZERS["gpt-2"].split("It's  2024!")
        ['It', "'s", ' ', ' 2024', '!']
        >>> PRETOKENIZERS["smollm"].split("It's  2024!")
        ['It', "'s", '  ', '2', '0', '2', '4', '!']
        """
        pieces = self._compiled.findall(text)
        if sum(map(len, pieces)) != len(text):
            raise ValueError(f"pattern must match all of every text, but {self.pattern!r} skips a part of this one")
        return pieces


PRETOKENIZERS: dict[str, Pretokenizer] = {
    "gpt-2": Pretokenizer(_GPT2),
    "smollm": Pretokenizer(_SMOLLM),
    "llama-bpe": Pretokenizer(_LLAMA3, whole_pieces=True),
}
"""The splits by the name that a GGUF file gives in ``tokenizer.ggml.pre`` (llama.cpp, ``src/llama-vocab.cpp``)."""


def pretokenizer(pre: str) -> Pretokenizer:
    """Return the split that a GGUF file names.

    There is no default: where one stood, other models got wrong ids without a word (llama.cpp, pull request 6920).

    Raises
    ------
    ValueError
        ``pre`` is empty or not one of `PRETOKENIZERS`.
    """
    if pre not in PRETOKENIZERS:
        raise ValueError(
            f"pre must be one of {', '.join(map(repr, PRETOKENIZERS))}, got {pre!r}; "
            "without the model's own split the ids are wrong, so add its pattern instead of taking another's"
        )
    return PRETOKENIZERS[pre]
