"""Ids to text while they stream: against decoding everything at the end."""

import random
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_streams import common_prefix, cut, of_pieces, random_stream, stream
from reference_tokenizers import load_data, without_type_checks

from llm_internals.detokenizer import StreamingDetokenizer, first_met, unfinished_length
from llm_internals.vocabularies import cl100k_base

STREAMS = load_data("streaming.json")
STOPPING = load_data("stopping.json")

N_RANDOM_STREAMS = 4_000
"""`make peers` runs 200,000."""


@pytest.mark.parametrize("case", STREAMS["utf8"], ids=lambda case: case["case"])
def test_a_character_is_shown_when_its_last_byte_is_there_and_not_before(case):
    """text-generation-webui #1603, mlc-llm #1142, #1397: U+FFFD was sent for characters split over tokens."""
    tokenizer, ids = of_pieces([bytes.fromhex(piece) for piece in case["token_bytes_hex"]])
    chunks = stream(StreamingDetokenizer(tokenizer), ids)
    assert chunks == [*case["expected_chunks"], case["expected_flush"]]
    assert "".join(chunks) == case["expected_full"] == tokenizer.decode(ids)


@without_type_checks()
def test_the_published_korean_stream_is_shown_character_by_character():
    """huggingface/tokenizers, tests/stream.rs; Llama 3's first 100,000 ids are those of cl100k."""
    detokenizer = StreamingDetokenizer(cl100k_base().tokenizer)
    for id, shown in STREAMS["decode_stream"]["steps"][:5]:
        assert detokenizer.add(id) == (shown or "")


def test_chinese_does_not_wait_for_a_space(lm):
    """transformers #22664."""
    detokenizer = StreamingDetokenizer(lm.tokenizer)
    ids = lm.tokenizer.encode("中文测试")
    done = [len(lm.tokenizer.decode_bytes(ids[: i + 1]).decode(errors="ignore")) for i in range(len(ids))]
    assert list(accumulate(len(detokenizer.add(id)) for id in ids)) == done


@without_type_checks()
def test_a_tail_is_unfinished_if_and_only_if_some_bytes_make_it_a_character():
    characters = [chr(code) for code in range(0, 0x110000, 0x20) if not 0xD800 <= code < 0xE000]
    starts = {
        character.encode()[:length] for character in characters for length in (1, 2, 3) if character.encode()[length:]
    }
    for first in range(256):
        for second in (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xE1, 0xED, 0xF0, 0xF4, 0xFF):
            for tail in (
                bytes([first]),
                bytes([first, second]),
                bytes([first, second, 0x80]),
                bytes([first, second, 0x7F]),
            ):
                longest = next((length for length in (3, 2, 1) if tail[-length:] in starts and length <= len(tail)), 0)
                assert unfinished_length(tail) == longest, tail


@pytest.mark.parametrize("piece", ["ff", "c080", "eda080", "f4908080", "e228a1", "80"])
def test_bytes_that_are_no_character_are_shown_as_soon_as_that_is_known(piece):
    """tokenizers #1705, vllm #24159: a stream with broken UTF-8 raised an error."""
    data = bytes.fromhex(piece)
    tokenizer, ids = of_pieces([data])
    detokenizer = StreamingDetokenizer(tokenizer)
    shown = detokenizer.add(ids[0])
    assert shown + detokenizer.finish() == data.decode(errors="replace")
    assert shown


def test_a_broken_beginning_is_shown_with_the_byte_that_breaks_it():
    tokenizer, ids = of_pieces([b"\xf0", b"\x9f", b"x"])
    assert stream(StreamingDetokenizer(tokenizer), ids) == ["", "", "\N{REPLACEMENT CHARACTER}x", ""]


@pytest.mark.parametrize("case", STOPPING["stream"], ids=lambda case: case["id"])
def test_a_stop_string_over_several_tokens_is_met_and_its_beginning_never_shown(case):
    """vllm #3574, SwiftLM #126, #132, mlx-knife #68, text-generation-inference #1039, #1724."""
    pieces = [bytes.fromhex(p["hex"]) if isinstance(p, dict) else p.encode() for p in case["pieces"]]
    tokenizer, ids = of_pieces(pieces)
    detokenizer = StreamingDetokenizer(tokenizer, case["stops"])
    chunks, consumed = [], 0
    for id in ids:
        chunks.append(detokenizer.add(id))
        consumed += 1
        if detokenizer.stopped is not None:
            break
    else:
        chunks.append(detokenizer.finish())
    # Where no stop string was met, most cases list the flush at the end as a chunk of its own.
    assert chunks[: len(case["expected_chunks"])] == case["expected_chunks"]
    assert "".join(chunks) == case["expected_text"]
    assert (detokenizer.stopped, consumed) == (case["stopped_on"], case["tokens_consumed"])


@pytest.mark.parametrize("case", STOPPING["match"], ids=lambda case: case["id"])
def test_the_stop_string_that_completes_first_wins(case):
    """vLLM, tests/detokenizer/test_check_stop_strings.py; there the text before the new characters is not searched."""
    old, new = (
        (case["text"][: -case["new_chars"]], case["text"][-case["new_chars"] :]) if case["new_chars"] else ("", "")
    )
    tokenizer, ids = of_pieces([old.encode(), new.encode()])
    detokenizer = StreamingDetokenizer(tokenizer, case["stops"])
    shown = "".join(stream(detokenizer, ids))
    if case["expected_stop_and_truncate_at"] is None:
        assert (shown, detokenizer.stopped) == (old + new, None)
    else:
        stop, length = case["expected_stop_and_truncate_at"]
        length = len(case["text"]) - len(stop) if length == -1 else length
        assert (shown, detokenizer.stopped) == (case["text"][:length], stop)


@pytest.mark.parametrize("case", STOPPING["hf_suffix"], ids=lambda case: case["id"])
def test_it_stops_at_the_first_character_where_the_text_ends_with_a_stop_string(case):
    """transformers, tests/generation/test_stopping_criteria.py, asks it of one text, we of all its beginnings."""
    text, stops = case["generated"], case["stops"]
    assert any(text.endswith(stop) for stop in stops) == case["expected_ends_with_stop"]
    tokenizer, ids = of_pieces([character.encode() for character in text])
    detokenizer = StreamingDetokenizer(tokenizer, stops)
    for end, id in enumerate(ids, start=1):
        detokenizer.add(id)
        if any(text[:end].endswith(stop) for stop in stops):
            assert detokenizer.stopped is not None
            return
        assert detokenizer.stopped is None
    assert not case["expected_ends_with_stop"]


def test_nothing_comes_after_the_stop():
    tokenizer, ids = of_pieces([b"one. ", b"two", b"\xf0"])
    detokenizer = StreamingDetokenizer(tokenizer, ["."])
    assert [detokenizer.add(id) for id in [*ids, *ids]] == ["one", "", "", "", "", ""]
    assert (detokenizer.finish(), detokenizer.stopped) == ("", ".")


def test_a_special_token_is_shown_and_matched_as_its_text(lm):
    ids = [*lm.tokenizer.encode("x"), 2, *lm.tokenizer.encode("y")]
    assert "".join(stream(StreamingDetokenizer(lm.tokenizer), ids)) == "x<|im_end|>y"
    assert "".join(stream(StreamingDetokenizer(lm.tokenizer, ["<|im_end|>"]), ids)) == "x"


def test_what_waits_can_be_looked_at():
    tokenizer, ids = of_pieces([b"cab\xf0", b"\x9f"])
    detokenizer = StreamingDetokenizer(tokenizer, ["ab🦙"])
    assert [detokenizer.add(id) for id in ids] == ["c", ""]
    assert (detokenizer.held, detokenizer.unfinished) == ("ab", b"\xf0\x9f")
    assert detokenizer.finish() == "ab\N{REPLACEMENT CHARACTER}"
    assert (detokenizer.held, detokenizer.unfinished) == ("", b"")


def test_held_text_is_let_go_when_an_unfinished_character_can_not_continue_the_stop():
    tokenizer, ids = of_pieces([b"ab", b"\xe2", b"\x82\xac"])
    assert stream(StreamingDetokenizer(tokenizer, ["ab🦙"]), ids) == ["", "ab", "€", ""]
    assert stream(StreamingDetokenizer(tokenizer, ["ab€"]), ids) == ["", "", "", ""]


@without_type_checks()
def test_random_streams_equal_decode_cut_at_the_first_stop():
    rng = random.Random(0)
    for _ in range(N_RANDOM_STREAMS):
        pieces, stops = random_stream(rng)
        tokenizer, ids = of_pieces(pieces)
        detokenizer = StreamingDetokenizer(tokenizer, stops)
        joined = "".join(stream(detokenizer, ids))
        assert (joined, detokenizer.stopped) == cut(tokenizer.decode(ids), stops), (pieces, stops)


@without_type_checks()
def test_random_ids_of_the_real_vocabulary_equal_decode(lm):
    rng = random.Random(0)
    letters = range(17, 300)
    for _ in range(1_000):
        ids = [rng.choice(letters) if rng.random() < 0.5 else rng.randrange(lm.tokenizer.vocab_size) for _ in range(20)]
        text = lm.tokenizer.decode(ids)
        stops = [text[at : at + rng.randint(1, 4)] for at in rng.sample(range(len(text)), 2)]
        detokenizer = StreamingDetokenizer(lm.tokenizer, stops)
        assert ("".join(stream(detokenizer, ids)), detokenizer.stopped) == cut(text, stops)


@without_type_checks()
def test_at_every_moment_all_that_is_certain_is_shown_and_no_more():
    """What is certain is what all continuations have in common; a few dozen of them are enough to tell."""
    rng = random.Random(1)
    for _ in range(N_RANDOM_STREAMS // 8):
        pieces, stops = random_stream(rng)
        # A stop string that never decides, since another one always completes before it, is waited for all the same.
        stops = [stop for order, stop in enumerate(stops) if first_met(stop, stops) == (len(stop), order)]
        tokenizer, ids = of_pieces(pieces)
        detokenizer = StreamingDetokenizer(tokenizer, stops)
        shown = ""
        for end, id in enumerate(ids, start=1):
            shown += detokenizer.add(id)
            data = tokenizer.decode_bytes(ids[:end])
            finals = [cut((data + more).decode(errors="replace"), stops)[0] for more in continuations(stops)]
            assert shown == common_prefix(finals), (pieces[:end], stops)


def continuations(stops):
    """Yield bytes that end an unfinished character in every way, and the rest of each stop string from any place on."""
    yield b""
    yield b"!"
    for byte in (0x80, 0x90, 0xA0, 0xBF):
        for more in (b"", b"\x80", b"\x80\x80", b"\xbf\xbf"):
            yield bytes([byte]) + more + b"!"
    for stop in map(str.encode, stops):
        for start in range(len(stop)):
            yield stop[start:]


@given(text=st.text(alphabet="ab🦙é", max_size=12), stop=st.text(alphabet="ab🦙é", min_size=1, max_size=4))
def test_one_byte_a_token_or_all_bytes_in_one_give_the_same_text(text, stop):
    data = text.encode()
    texts = []
    for pieces in ([data], [data[i : i + 1] for i in range(len(data))]):
        tokenizer, ids = of_pieces(pieces)
        texts.append("".join(stream(StreamingDetokenizer(tokenizer, [stop]), ids)))
    assert texts == [cut(text, [stop])[0]] * 2


@pytest.mark.parametrize(
    ("stop", "error"),
    [
        ("END", r"stop must be a sequence of strings, got the string 'END'; write \['END'\]"),
        (["a", ""], r"stop\[1\] must not be empty"),
        (["\ud83d"], r"stop\[0\] must be valid Unicode"),
    ],
)
def test_stop_strings_that_can_not_work_are_refused(lm, stop, error):
    with pytest.raises(ValueError, match=error):
        StreamingDetokenizer(lm.tokenizer, stop)


@pytest.mark.parametrize("id", [-1, 49152, True])
def test_what_is_no_id_is_refused(lm, id):
    with pytest.raises(ValueError, match=r"must be an int in 0 .. 49151"):
        StreamingDetokenizer(lm.tokenizer).add(id)
