"""Stage 1, text to ids: five real vocabularies behind one interface, to compare how they cut the same text.

SmolLM2's, the model of this book; cl100k and o200k, OpenAI's; Mistral's older one, made with SentencePiece, and its
newer one, Tekken. Four of them are byte-level and run on our own `tokenizer`; the fifth runs on the ``sentencepiece``
library.

The data lies in installed packages (``bpe-openai`` carries OpenAI's ranks, ``mistral-common`` Mistral's files), so
nothing is downloaded; only the files are read, and the packages' code is not imported.

Leaves out: special tokens and chat templates of the other four.
Chapter: ``01_tokenization``.
Source: the split patterns are cited where they stand; Kudo and Richardson (2018), "SentencePiece: A simple and language
independent subword tokenizer and detokenizer for Neural Text Processing", section 3.
"""

import base64
import gzip
import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from llm_internals.byte_alphabet import spell
from llm_internals.pretokenizer import Pretokenizer
from llm_internals.tokenizer import Tokenizer

# openai/tiktoken, tiktoken_ext/openai_public.py, cl100k_base.
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)

# openai/tiktoken, tiktoken_ext/openai_public.py, o200k_base: a word may change from capitals to small letters once, and
# takes a contraction with it.
_O200K_WORD = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
)
_O200K_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_O200K = _O200K_WORD + r"|\p{N}{1,3}" + _O200K_REST


@dataclass(frozen=True)
class BytePairVocabulary:
    """A byte-level vocabulary.

    Attributes
    ----------
    name : str
    vocab_size : int
        All ids, special and unused ones included.
    tokenizer : Tokenizer
    first_id : int
        The id of the tokenizer's id 0: Tekken has 1,000 special tokens in front.
    """

    name: str
    vocab_size: int
    tokenizer: Tokenizer
    first_id: int = 0

    def encode(self, text: str) -> list[int]:
        """Return the model's ids of a text, as ordinary text."""
        return [self.first_id + id for id in self.tokenizer.encode(text)]

    def pieces(self, text: str) -> list[bytes]:
        """Return the bytes of each token; joined, they are the text's UTF-8."""
        return [self.tokenizer.token_bytes(id) for id in self.tokenizer.encode(text)]

    def spellings(self, text: str) -> list[str]:
        """Return the tokens as the vocabulary's file writes them: ``Ġ`` for a space."""
        return [spell(piece) for piece in self.pieces(text)]


@dataclass(frozen=True)
class SentencePieceVocabulary:
    """A SentencePiece vocabulary.

    It is trained on characters, spaces written as ``▁`` (U+2581); a space is put in front of every text, so that a word
    has the same tokens at the start as after a space.
    What the vocabulary has no character for falls back to byte tokens.

    Attributes
    ----------
    name : str
    processor : SentencePieceProcessor
    """

    name: str
    processor: SentencePieceProcessor

    @property
    def vocab_size(self) -> int:
        """All ids, special ones and bytes included."""
        return self.processor.vocab_size()

    def encode(self, text: str) -> list[int]:
        """Return the model's ids of a text."""
        return self.processor.encode(text)

    def pieces(self, text: str) -> list[bytes]:
        """Return the bytes of each token; joined, they are the UTF-8 of a space (the dummy prefix) and the text."""
        return [self._bytes(id) for id in self.encode(text)]

    def spellings(self, text: str) -> list[str]:
        """Return the tokens as the vocabulary's file writes them: ``▁`` for a space, ``<0x0A>`` for a byte."""
        return [self.processor.id_to_piece(id) for id in self.encode(text)]

    def _bytes(self, id: int) -> bytes:
        spelling = self.processor.id_to_piece(id)
        if self.processor.is_byte(id):
            return bytes.fromhex(spelling.removeprefix("<0x").removesuffix(">"))
        return spelling.replace("▁", " ").encode()


Vocabulary = BytePairVocabulary | SentencePieceVocabulary


def five_vocabularies(tokenizer: Tokenizer) -> tuple[Vocabulary, ...]:
    """Return SmolLM2's vocabulary, given as the loaded model's tokenizer, and the four others."""
    smollm2 = BytePairVocabulary("SmolLM2", tokenizer.vocab_size, tokenizer)
    return smollm2, cl100k_base(), o200k_base(), mistral_sentencepiece(), tekken()


@lru_cache(maxsize=1)
def cl100k_base() -> BytePairVocabulary:
    """Return the vocabulary of GPT-3.5 and GPT-4; ids 100,256 and up are special or unused."""
    return _openai("cl100k_base", 100_277, Pretokenizer(_CL100K, whole_pieces=True))


@lru_cache(maxsize=1)
def o200k_base() -> BytePairVocabulary:
    """Return the vocabulary of GPT-4o; ids 199,998 and up are special or unused."""
    return _openai("o200k_base", 200_019, Pretokenizer(_O200K, whole_pieces=True))


@lru_cache(maxsize=1)
def mistral_sentencepiece() -> SentencePieceVocabulary:
    """Return the vocabulary of Mistral 7B (file ``tokenizer.model.v1``)."""
    path = _data_file("mistral_common", "mistral-common", "tokenizer.model.v1")
    return SentencePieceVocabulary("Mistral SentencePiece", SentencePieceProcessor(model_file=str(path)))


@lru_cache(maxsize=1)
def tekken() -> BytePairVocabulary:
    """Return the vocabulary of Mistral Nemo and later models (file ``tekken_240911.json``).

    The file lists 150,000 tokens in the order of their ranks, of which the models use as many as fit beside the special
    tokens, and the split pattern.
    """
    path = _data_file("mistral_common", "mistral-common", "tekken_240911.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    config = content["config"]
    vocab_size, special = config["default_vocab_size"], config["default_num_special_tokens"]
    ranks = {
        base64.b64decode(token["token_bytes"]): token["rank"] for token in content["vocab"][: vocab_size - special]
    }
    split = Pretokenizer(config["pattern"], whole_pieces=True)
    return BytePairVocabulary("Tekken", vocab_size, Tokenizer.from_ranks(ranks, {}, split), first_id=special)


def _openai(name: str, vocab_size: int, split: Pretokenizer) -> BytePairVocabulary:
    """Read a file of lines ``base64-of-token rank``."""
    path = _data_file("bpe_openai", "bpe-openai", f"{name}.tiktoken.gz")
    with gzip.open(path) as file:
        ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, file)}
    return BytePairVocabulary(name, vocab_size, Tokenizer.from_ranks(ranks, {}, split))


def _data_file(module: str, distribution: str, name: str) -> Path:
    """Return the path of a data file of an installed package, without importing the package.

    Raises
    ------
    FileNotFoundError
        The package is not installed, or its version does not carry the file.
    """
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            f"this vocabulary is data of the package {distribution!r}: run `pip install {distribution}`"
        )
    path = Path(spec.submodule_search_locations[0]) / "data" / name
    if not path.is_file():
        raise FileNotFoundError(f"{distribution!r} has no file data/{name}; install the version in requirements.txt")
    return path
