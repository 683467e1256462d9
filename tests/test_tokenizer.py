"""Text to ids and back: the promises of the tokenizer, and the ids of other engines.

Docstrings name the public threads whose mistakes a test looks for. Two that can't happen here: an overflow of the
number of tokens at 2**31 (llama.cpp #14301), since Python's integers have no limit, and a split with several passes
that is only partly applied (Falcon's, llama.cpp #3502), since a split that isn't known by name is refused.
"""

import hashlib
import random
import sysconfig
import time
import tracemalloc
from pathlib import Path

import pytest
import sphinx
import tiktoken
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from reference_tokenizers import hugging_face_tokenizer, load_data, random_texts, without_type_checks

from llm_internals.byte_alphabet import BYTES_IN_ALPHABET_ORDER
from llm_internals.gguf import read_gguf
from llm_internals.pretokenizer import PRETOKENIZERS
from llm_internals.tokenizer import Tokenizer, UnencodableError, train_bpe
from llm_internals.weights_file import find_weights

ENCODE_CASES = load_data("tokenizer_encode.json")["encode"]
LONG_RUNS = load_data("tokenizer_long_runs.json")["runs"]
MISSING = bytes.fromhex("04 06 13 14 16 1d c0 c1 f1 f2 f5 f6 f7 f8 f9 fa fb fc fd fe ff")

SECONDS_FOR_A_MILLION = 30.0
"""Of processor time; it takes two to five."""
GROWTH = 3.0
"""time(2n) / time(n): 2.1 for n log n, 4 for n * n, and clocks waver."""
MEGABYTES_FOR_A_MILLION = 500


@pytest.fixture(scope="module")
def tokenizer(lm) -> Tokenizer:
    return lm.tokenizer


@pytest.fixture(scope="module")
def metadata() -> dict:
    return read_gguf(find_weights(None)).metadata


@pytest.fixture(scope="module")
def reference(metadata) -> tokenizers.Tokenizer:
    return hugging_face_tokenizer(metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"])


@pytest.fixture(scope="module")
def reference_with_special(metadata, tokenizer) -> tokenizers.Tokenizer:
    special_ids = list(tokenizer.special_tokens.values())
    return hugging_face_tokenizer(metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"], special_ids)


@pytest.fixture(scope="module")
def encodable(tokenizer):
    return lambda text: not set(text.encode()) & set(tokenizer.missing_bytes)


@pytest.mark.parametrize("case", ENCODE_CASES, ids=lambda case: case["id"])
def test_published_strings_have_their_published_ids(tokenizer, case):
    if case["smollm2_lossless"]:
        assert tokenizer.encode(case["text"]) == case["smollm2_ordinary"]
        assert tokenizer.encode(case["text"], allow_special=True) == case["smollm2_parse_special"]
        assert tokenizer.decode(case["smollm2_ordinary"]) == case["text"]
    else:
        with pytest.raises(UnencodableError):
            tokenizer.encode(case["text"])


@pytest.mark.parametrize("run", LONG_RUNS, ids=lambda run: f"{run['count']} of {run['unit']!r}")
def test_long_runs_of_one_sign_have_the_ids_of_other_engines(tokenizer, run):
    """tiktoken #195, #391: quadratic time."""
    ids = tokenizer.encode(run["prefix"] + run["unit"] * run["count"] + run["suffix"])
    assert len(ids) == run["smollm2"]["n"]
    assert hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest() == run["smollm2"]["sha256_csv"]


@without_type_checks()
def test_fuzzed_strings_have_the_ids_of_hugging_face(tokenizer, reference, encodable):
    texts = list(random_texts(seed=1, count=50_000, encodable=encodable))
    for text, encoding in zip(texts, reference.encode_batch(texts), strict=True):
        assert tokenizer.encode(text) == encoding.ids, text


@without_type_checks()
def test_fuzzed_strings_with_special_tokens_have_the_ids_of_hugging_face(tokenizer, reference_with_special, encodable):
    extra = [*tokenizer.special_tokens, "<|im_", "im_end|>", "<repo", "_name>"]
    texts = list(random_texts(seed=2, count=10_000, encodable=encodable, extra=extra, longest=12))
    for text, encoding in zip(texts, reference_with_special.encode_batch(texts), strict=True):
        assert tokenizer.encode(text, allow_special=True) == encoding.ids, text


def test_program_texts_and_thirty_languages_have_the_ids_of_hugging_face(tokenizer, reference, encodable):
    """Python's library, and the messages of Sphinx in 34 languages, most of them not written in plain Latin letters."""
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::8]
    catalogues = sorted(Path(sphinx.__file__).parent.glob("locale/*/LC_MESSAGES/sphinx.po"))[::2]
    texts = [path.read_text(encoding="utf-8") for path in [*sources, *catalogues]]
    texts = [text for text in texts if encodable(text)]
    assert sum(map(len, texts)) > 2_500_000
    for text, encoding in zip(texts, reference.encode_batch(texts), strict=True):
        assert tokenizer.encode(text) == encoding.ids
        assert tokenizer.decode(encoding.ids) == text


@without_type_checks()
def test_a_million_of_one_letter_and_of_random_letters_take_seconds(tokenizer):
    """tiktoken #15 (a panic), openai/harmony #93 (a stack overflow): such a run is one piece, and recursion is out."""
    started = time.process_time()
    assert len(tokenizer.encode("^" * 1_000_000)) == 250_000
    letters = "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz", k=1_000_000))
    assert tokenizer.decode(tokenizer.encode(letters)) == letters
    assert time.process_time() - started < 2 * SECONDS_FOR_A_MILLION


@without_type_checks()
@pytest.mark.parametrize("kind", ["equal", "random"])
def test_time_grows_no_faster_than_n_log_n(tokenizer, kind):
    def seconds(n):
        text = "x" * n if kind == "equal" else "".join(random.Random(0).choices("etaoin", k=n))
        started = time.process_time()
        tokenizer.encode(text)
        return time.process_time() - started

    assert min(seconds(100_000) for _ in range(3)) < GROWTH * min(seconds(50_000) for _ in range(3))


def test_a_million_equal_letters_need_less_than_500_megabytes(tokenizer):
    tracemalloc.start()
    tokenizer.encode("x" * 100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 10 * peak < MEGABYTES_FOR_A_MILLION * 1_000_000


def test_the_missing_bytes_are_the_21_that_the_model_lacks(tokenizer):
    assert tokenizer.missing_bytes == MISSING


@pytest.mark.parametrize(
    ("text", "character", "position", "byte"),
    [
        ("a\x04b", "\x04", 1, "0x04"),
        ("\x1d", "\x1d", 0, "0x1d"),
        ("é🦙\U00040000", "\U00040000", 2, "0xf1"),
        ("日" * 5 + "\x14\x04", "\x14", 5, "0x14"),
    ],
)
@pytest.mark.parametrize("allow_special", [False, True])
def test_a_character_that_has_no_ids_is_named_with_its_bytes_and_position(
    tokenizer, text, character, position, byte, allow_special
):
    with pytest.raises(UnencodableError, match=f"at position {position}: byte {byte} is not in the vocabulary") as info:
        tokenizer.encode(text, allow_special)
    assert (info.value.character, info.value.bytes, info.value.position) == (character, character.encode(), position)


def test_the_position_counts_from_the_start_of_the_text_after_special_tokens_too(tokenizer):
    with pytest.raises(UnencodableError, match="at position 14"):
        tokenizer.encode("<|im_start|>ab\x04", allow_special=True)


HIGH, LOW = chr(0xD83D), chr(0xDC4D)
"""The two halves of 👍 in UTF-16."""


@pytest.mark.parametrize("text", ["ab" + HIGH, "ab" + LOW, "ab" + HIGH + LOW, "ab" + LOW + HIGH])
def test_a_lone_surrogate_is_refused_even_if_its_other_half_follows(tokenizer, text):
    with pytest.raises(UnencodableError, match=r"bytes none\) at position 2: a lone surrogate") as info:
        tokenizer.encode(text)
    assert (info.value.character, info.value.bytes, info.value.position) == (text[2], b"", 2)


def test_a_vocabulary_without_a_letter_says_so():
    """transformers #48320: the error was "substring not found"."""
    greek = Tokenizer.from_vocabulary(["Î", "±", "Î±"], ["Î ±"], (), "gpt-2")
    assert greek.encode("αα") == [2, 2]
    with pytest.raises(UnencodableError, match="can't encode 'a'"):
        greek.encode("αa")


@given(text=st.text())
def test_a_text_comes_back_or_is_refused(tokenizer, text):
    if set(text.encode()) & set(MISSING):
        with pytest.raises(UnencodableError):
            tokenizer.encode(text)
    else:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert not set(ids) & set(tokenizer.special_tokens.values())


@pytest.mark.parametrize("text", ["   leading", "trailing   ", "\t\r\n\x0b", "a\u00a0b", " ", "", "  !  ?  ,"])
def test_spaces_are_neither_lost_nor_added(tokenizer, text):
    """transformers #47487; no clean-up of spaces on decoding either."""
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_lowest_rank_first(tokenizer):
    """LLMs-from-scratch #558: merged in the order of position, "Hello" gave other tokens."""
    assert tokenizer.encode("Hello,") == [19556, 28]
    assert [len(step) for step in tokenizer.merge_steps("Hello")] == [5, 4, 3, 2, 1]


def test_a_string_becomes_a_special_token_only_when_asked(tokenizer):
    assert 2 not in tokenizer.encode("<|im_end|>")
    assert tokenizer.encode("<|im_end|>", allow_special=True) == [2]
    assert tokenizer.decode([2]) == "<|im_end|>"


def test_text_around_a_special_token_is_encoded_as_it_stands(tokenizer):
    """llama.cpp #23840, #4772, transformers #24569, #25814, #33371: spaces at a special token were added or eaten."""
    assert tokenizer.encode("<|im_start|> uns", allow_special=True) == [1, *tokenizer.encode(" uns")]
    assert tokenizer.encode("<|im_start|>uns", allow_special=True) == [1, *tokenizer.encode("uns")]
    spaced = tokenizer.encode("   <|im_start|> <|im_end|>   ", allow_special=True)
    assert spaced == [*tokenizer.encode("   "), 1, *tokenizer.encode(" "), 2, *tokenizer.encode("   ")]


def test_of_two_special_tokens_that_fit_the_longer_is_taken():
    tokens = ["a", "<a>", "<a><a>"]
    tokenizer = Tokenizer.from_vocabulary(tokens, [], {1, 2}, "gpt-2")
    assert tokenizer.encode("<a><a><a>a", allow_special=True) == [2, 1, 0]


@without_type_checks()
def test_every_token_decodes_to_bytes_that_encode_to_it(tokenizer):
    not_utf8 = 0
    for id in range(tokenizer.vocab_size):
        try:
            text = tokenizer.token_bytes(id).decode()
        except UnicodeDecodeError:
            not_utf8 += 1
        else:
            assert tokenizer.encode(text, allow_special=True) == [id]
    assert not_utf8 == 313


@given(data=st.binary())
def test_decode_replaces_each_maximal_bad_part(data):
    tokenizer = Tokenizer([bytes([byte]) for byte in range(256)], [], {}, PRETOKENIZERS["gpt-2"])
    assert tokenizer.decode_bytes(list(data)) == data
    assert tokenizer.decode(list(data)) == data.decode(errors="replace")


@pytest.mark.parametrize("bad", [-1, 49152, 2**70, True, 1.0, "1", None])
def test_what_is_no_id_is_refused_with_its_position_and_the_range(tokenizer, bad):
    with pytest.raises(ValueError, match=r"ids\[2\] must be an int in 0 .. 49151, got"):
        tokenizer.decode([1, 2, bad])


@pytest.mark.parametrize("bad", [-1, 49152, 2**70, True])
def test_bytes_of_what_is_no_id_are_refused(tokenizer, bad):
    with pytest.raises(ValueError, match=r"ids\[0\] must be an int in 0 .. 49151, got"):
        tokenizer.token_bytes(bad)


@pytest.mark.parametrize("text", [None, 5, b"bytes", ["list"]])
def test_what_is_no_text_is_a_type_error(tokenizer, text):
    with pytest.raises(TypeError):
        tokenizer.encode(text)


def test_a_tokenizer_shows_its_size(tokenizer):
    assert repr(tokenizer) == "Tokenizer(vocab_size=49152, special_tokens=17)"


def test_no_ids_and_no_text(tokenizer):
    assert tokenizer.encode("") == []
    assert tokenizer.encode("", allow_special=True) == []
    assert tokenizer.decode([]) == ""


class TestFromVocabulary:
    """The lists of a GGUF file."""

    def test_the_split_is_named_by_the_file_and_never_assumed(self):
        for pre in ("", "default"):
            with pytest.raises(ValueError, match=f"got {pre!r}"):
                Tokenizer.from_vocabulary(["a"], [], (), pre)

    @pytest.mark.parametrize(
        ("tokens", "merges", "special_ids", "message"),
        [
            (["a", "b", "a"], [], (), "tokens must all be different, got 'a' at 0 and at 2"),
            (["a", "b c"], [], (), "tokens\\[1\\]: spelling must use the 256 characters"),
            (["a", "b"], ["a b"], (), "merges\\[0\\] is 'a b', but 'ab' is not in tokens"),
            (["a", "aa"], ["a a", "a c"], (), "merges\\[1\\] is 'a c', but 'c' is not in tokens"),
            (["a", "aa"], ["aa"], (), "merges\\[0\\] is 'aa', but '' is not in tokens"),
            (["a"], [], {1}, "special_ids must be in 0 .. 0, got 1"),
            (["a"], [], {-1}, "special_ids must be in 0 .. 0, got -1"),
            (["a", ""], [], {1}, "special_tokens must map non-empty strings"),
        ],
    )
    def test_lists_that_contradict_each_other_are_refused(self, tokens, merges, special_ids, message):
        with pytest.raises(ValueError, match=message):
            Tokenizer.from_vocabulary(tokens, merges, special_ids, "gpt-2")


class TestFromRanks:
    """tiktoken's list of tokens."""

    def test_merges_of_white_space_are_found(self):
        """tiktoken #60: a conversion lost them, and two spaces became two tokens."""
        tokenizer = Tokenizer.from_ranks({b" ": 0, b"  ": 1}, {"<end>": 2}, PRETOKENIZERS["gpt-2"])
        assert tokenizer.encode("  ") == [1]
        assert tokenizer.decode([1, 2]) == "  <end>"

    @pytest.mark.parametrize("special", [{"<end>": 3}, {"<end>": 1}])
    def test_ids_with_gaps_or_twice_are_refused(self, special):
        with pytest.raises(ValueError, match=r"must be 0 .. 2, each once"):
            Tokenizer.from_ranks({b"a": 0, b"aa": 1}, special, PRETOKENIZERS["gpt-2"])


class TestToTiktoken:
    """The same vocabulary in compiled code."""

    @without_type_checks()
    def test_the_ids_are_the_same(self, tokenizer, encodable):
        encoding = tokenizer.to_tiktoken()
        assert isinstance(encoding, tiktoken.Encoding)
        texts = [case["text"] for case in ENCODE_CASES if case["smollm2_lossless"]]
        extra = list(tokenizer.special_tokens)
        for text in [*texts, *random_texts(seed=3, count=10_000, encodable=encodable, extra=extra)]:
            assert encoding.encode_ordinary(text) == tokenizer.encode(text), text
            assert encoding.encode(text, allowed_special="all") == tokenizer.encode(text, allow_special=True), text

    @without_type_checks()
    def test_special_tokens_and_decoding_are_the_same(self, tokenizer):
        encoding = tokenizer.to_tiktoken()
        assert encoding.n_vocab == tokenizer.vocab_size
        assert all(encoding.decode_single_token_bytes(id) == tokenizer.token_bytes(id) for id in range(49152))

    @without_type_checks()
    def test_what_is_said_to_differ_does(self, tokenizer):
        encoding = tokenizer.to_tiktoken()
        with pytest.raises(BaseException) as info:  # noqa: PT011
            encoding.encode_ordinary("a\x04b")
        assert type(info.value).__name__ == "PanicException"
        assert not isinstance(info.value, Exception)
        assert encoding.encode_ordinary("\ud83d") == tokenizer.encode("\N{REPLACEMENT CHARACTER}")

    @pytest.mark.parametrize(
        ("tokens", "merges"),
        [
            (["a", "b", "ab", "ba"], ["b a", "a b"]),  # ids in another order than the merges
            (["a", "b", "c", "bc", "ab", "abc"], ["b c", "a b", "ab c"]),  # tiktoken would make abc of a and bc
            (["a", "b", "ab", "aab"], ["a b"]),  # and aab, which no merge makes, of a and ab
            (["b", "ab"], []),
        ],
    )
    def test_merges_that_do_not_follow_from_the_order_of_the_ids_are_refused(self, tokens, merges):
        with pytest.raises(ValueError, match=r"merges must follow from the order of the ids|is not made of two"):
            Tokenizer.from_vocabulary(tokens, merges, (), "gpt-2").to_tiktoken()


class TestTrainBpe:
    """From a text to a tokenizer."""

    def test_ids_are_bytes_then_merges_then_special_tokens(self):
        tokenizer = train_bpe("low low lower newest", 260, special_tokens=["<end>"])
        assert [tokenizer.token_bytes(id) for id in range(256)] == [bytes([byte]) for byte in BYTES_IN_ALPHABET_ORDER]
        assert [tokenizer.token_bytes(id) for id in range(256, 260)] == [b"lo", b"low", b" low", b"<end>"]
        assert tokenizer.special_tokens == {"<end>": 259}
        assert tokenizer.encode("low<end>", allow_special=True) == [257, 259]

    def test_the_published_example_has_its_published_tokens(self):
        """karpathy/minbpe, README: aaabdaaabac becomes XdXac. In #93, #111 texts showed merges that nobody had run."""
        tokenizer = train_bpe("aaabdaaabac", 259, tie_rule="first_seen")
        assert tokenizer.encode("aaabdaaabac") == [258, 67, 258, 64, 66]
        assert [tokenizer.token_bytes(id) for id in (256, 257, 258)] == [b"aa", b"aaa", b"aaab"]

    @pytest.mark.parametrize("case", load_data("bpe.json")["train"], ids=lambda case: case["id"])
    def test_toys_encode_as_by_the_trainer_they_come_from(self, case):
        gpt2 = PRETOKENIZERS["gpt-2"]
        lowest = train_bpe(case["text"], 256 + case["n_merges"], split=gpt2)
        tokens = [lowest.token_bytes(id).decode() for id in lowest.encode(case["text"])]
        assert tokens == [token.replace("Ġ", " ") for token in case["hf_trainer_encoded"]]
        first = train_bpe(case["text"], 256 + case["n_merges"], split=gpt2, tie_rule="first_seen")
        ids = [BYTES_IN_ALPHABET_ORDER[id] if id < 256 else id for id in first.encode(case["text"])]
        assert ids == case["first_seen_tie_rule"]["encoded"]

    def test_training_and_encoding_cut_the_text_alike(self):
        """LLMs-from-scratch #975: merges that training made across words were never used."""
        text = "the cat\n\nthe hat 2024 2024"
        tokenizer = train_bpe(text, 300)
        pieces = set(tokenizer.split.split(text))
        tokens = [tokenizer.token_bytes(id).decode() for id in range(256, tokenizer.vocab_size)]
        assert tokens
        assert all(any(token in piece for piece in pieces) for token in tokens)
        assert all(tokenizer.encode(piece) == [tokens.index(piece) + 256] for piece in pieces if len(piece) > 1)

    @given(st.text(), st.integers(256, 300))
    def test_any_text_comes_back(self, text, vocab_size):
        tokenizer = train_bpe(text, vocab_size)
        assert tokenizer.vocab_size <= vocab_size
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert tokenizer.missing_bytes == b""

    def test_a_vocabulary_smaller_than_the_bytes_is_refused(self):
        with pytest.raises(
            ValueError, match=r"vocab_size must be at least 257 \(256 bytes and 1 special tokens\), got 256"
        ):
            train_bpe("text", 256, special_tokens=["<end>"])

    def test_a_lone_surrogate_is_refused(self):
        with pytest.raises(UnencodableError, match="at position 1: a lone surrogate"):
            train_bpe("a\ud83d", 256)

    def test_a_special_token_given_twice_is_refused(self):
        with pytest.raises(ValueError, match="special_tokens"):
            train_bpe("text", 300, special_tokens=["<end>", "<end>"])
