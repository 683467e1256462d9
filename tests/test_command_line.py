"""The three commands, run in this process: what they print, what they write, and how they fail."""

import errno
import importlib
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_internals import command_line
from llm_internals.chat import encode_chat
from llm_internals.checkpoint import LanguageModel
from llm_internals.command_line import main, terminal
from llm_internals.command_line.arguments import SAMPLING_OPTIONS, build_parser, sampling_params
from llm_internals.command_line.conversation import FIRST_CAPACITY, Conversation, reply, talk, with_room
from llm_internals.generate import generate
from llm_internals.sampling import ORDERS, SamplingParams
from llm_internals.sampling_params import NEUTRAL
from llm_internals.trace import Trace
from tests.tiny_model import random_language_model

GREEDY = SamplingParams(temperature=0)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of a known width."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> LanguageModel:
    """The commands load this model instead of the real one."""
    lm = random_language_model()
    monkeypatch.setattr(command_line, "load_checkpoint", lambda path: lm)
    return lm


def lines_read(*lines: str) -> Callable[[str], str]:
    """What a user types, then the end of the input."""
    waiting = iter(lines)

    def read(_: str) -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    return read


def only_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr, after nothing on stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err.strip()


# trace


def test_trace_prints_every_stage_of_every_token(tiny: LanguageModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "abc", "--temperature", "0.7", "--top-k", "9", "--max-tokens", "2", "--seed", "7"]) == 0
    out = capsys.readouterr().out
    for stage in ("2 embed", "3 forward pass", "4 logits", "5 sample", "6 detokenize", "7 loop"):
        assert out.count(stage) == 2, stage
    assert out.count("1 tokenize") == 1
    assert "top_k 9: 16 → 9, without" in out
    assert "temperature 0.7: keeps all 16" in out
    assert "u = 0.3238" in out, "the first number of the stream of seed 7"
    assert "as many tokens as were asked for are there" in out


def test_trace_of_the_real_model(
    lm: LanguageModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "load_checkpoint", lambda path: lm)
    arguments = ["--temperature", "0.7", "--top-p", "0.9", "--max-tokens", "1", "--seed", "7"]
    assert main(["trace", "The capital of Australia is", *arguments]) == 0
    out = capsys.readouterr().out
    assert "27 characters become 5 tokens" in out
    assert "␣Australia" in out
    assert "top_p 0.9: 49,152 → 2, without 8 % of the probability" in out
    assert "20 53 79 64 6e 65 79 → ' Sydney'" in out


def test_what_trace_writes_can_be_loaded_opened_and_replayed(
    tiny: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, html, again = tmp_path / "trace.json", tmp_path / "trace.html", tmp_path / "again.html"
    assert main(["trace", "abc", "--max-tokens", "3", "--seed", "1", "--json", str(data), "--html", str(html)]) == 0
    first = capsys.readouterr().out
    recorded = Trace.load(data)
    assert recorded.params == SamplingParams(seed=1)
    assert html.read_text(encoding="utf-8") == recorded.to_html()
    monkeypatch.setattr(command_line, "load_checkpoint", None)
    assert main(["trace", "--replay", str(data), "--html", str(again)]) == 0
    replayed = capsys.readouterr().out
    assert first.split("written:")[0] == replayed.split("written:")[0], "a replay prints what the recording printed"
    assert again.read_bytes() == html.read_bytes()


def test_the_same_seed_gives_the_same_lines(tiny: LanguageModel, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for _ in range(2):
        assert main(["trace", "abc", "--seed", "5"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_a_chat_is_put_into_the_models_template(
    lm: LanguageModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command_line, "load_checkpoint", lambda path: lm)
    path = tmp_path / "trace.json"
    arguments = ["--temperature", "0", "--max-tokens", "1", "--json", str(path)]
    assert main(["trace", "Hi", "--chat", *arguments]) == 0
    assert Trace.load(path).prompt.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert main(["trace", "Hi", "--system", "Be brief.", *arguments]) == 0
    assert Trace.load(path).prompt.startswith("<|im_start|>system\nBe brief.<|im_end|>\n")


def test_a_dash_reads_the_prompt_from_stdin(
    tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("abc"))
    assert main(["trace", "-", "--max-tokens", "1"]) == 0
    assert "3 characters become 2 tokens" in capsys.readouterr().out


def test_stop_strings_biases_bans_and_order_reach_the_loop(tiny: LanguageModel, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    options = ["--stop", "b", "--stop", "c", "--logit-bias", "3=-2.5", "--logit-bias", "4=1", "--banned-id", "5"]
    assert main(["trace", "abc", *options, "--order", "llama.cpp", "--json", str(path)]) == 0
    recorded = Trace.load(path)
    assert recorded.stop == ("b", "c")
    assert recorded.params == SamplingParams(logit_bias={3: -2.5, 4: 1.0}, banned_ids=(5,), order=ORDERS["llama.cpp"])


def test_a_narrow_terminal_is_enough(
    tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "34")
    assert main(["trace", "abc", "--max-tokens", "2", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 34, "the response itself is short"
    assert "…" not in out, "nothing is cut off"


def test_colours_appear_on_a_terminal_only_and_not_with_no_color(
    tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["trace", "abc", "--max-tokens", "1", "--seed", "1"]
    main(arguments)
    plain = capsys.readouterr().out
    assert "\x1b[" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(arguments)
    assert "\x1b[1;36m" in capsys.readouterr().out, "stages are bold and cyan"
    monkeypatch.setenv("NO_COLOR", "1")
    main(arguments)
    assert "\x1b[1;36m" not in capsys.readouterr().out


# tokenize


def test_tokenize_shows_pieces_ids_and_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokenize", " unbelievable 👍"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["position", "token", "id", "bytes"]
    assert (rows[1][1], rows[1][3:]) == ("␣unbelie", ["20", "75", "6e", "62", "65", "6c", "69", "65"])
    assert rows[3][1].startswith("\\x20\\xf0")
    assert rows[-1] == ["15", "characters,", "18", "bytes,", "5", "tokens"]


def test_tokenize_makes_special_tokens_only_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    main(["tokenize", "<|im_end|>"])
    ordinary = capsys.readouterr().out
    main(["tokenize", "--special", "<|im_end|>"])
    special = capsys.readouterr().out
    assert "10 characters, 10 bytes, 1 token" in special
    assert "1 token\n" not in ordinary


def test_nothing_has_no_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokenize", ""]) == 0
    assert capsys.readouterr().out == "0 characters, 0 bytes, 0 tokens\n"


# Failing


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--top-p", "1.5"], r"top_p must be a number in \[0, 1\], got 1\.5"),
        (["--temperature", "-1"], "temperature must be a finite number >= 0, got -1"),
        (["--temperature", "nan"], "temperature must be a finite number >= 0, got nan"),
        (["--repetition-penalty", "0"], "repetition_penalty must be a finite number > 0, got 0"),
        (["--seed", "-1"], "seed must be an integer >= 0, or None, got -1"),
        (["--html", "nowhere/page.html"], "can't write to 'nowhere/page.html': there is no folder 'nowhere'"),
        (["--json", "."], "can't write to '.': it is a folder"),
        (["--banned-id", "99"], r"banned_ids must hold ids in \[0, 16\), got 99"),
    ],
)
def test_a_value_that_cannot_be_is_one_line_and_exit_code_2(
    tiny: LanguageModel, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "abc", *arguments]) == 2
    line = capsys.readouterr().err
    assert re.fullmatch(f"llm_internals trace: {message}.*\n", line)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: trace | chat | tokenize"),
        (["sing"], "invalid choice: 'sing'"),
        (["trace"], "one of the arguments PROMPT --replay is required"),
        (["trace", "abc", "--replay", "x.json"], "not allowed with argument"),
        (["trace", "abc", "--max-tokens", "0"], "--max-tokens: must be an integer of at least 1, got 0"),
        (["trace", "abc", "--max-tokens", "many"], "--max-tokens: must be an integer, got 'many'"),
        (["trace", "abc", "--temperature", "hot"], "--temperature: invalid float value: 'hot'"),
        (["trace", "abc", "--stop", ""], "--stop: must not be empty"),
        (["trace", "abc", "--logit-bias", "3"], "--logit-bias: must be ID=NUMBER, such as 16570=-2.5, got '3'"),
        (["trace", "abc", "--logit-bias", "3=x"], "--logit-bias: must be a number, got 'x'"),
        (["trace", "abc", "--order", "mine"], "--order: invalid choice: 'mine'"),
        (["trace", "abc", "--temp", "1"], "unrecognized arguments: --temp 1"),
        (["tokenize"], "the following arguments are required: TEXT"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    line = only_line(capsys)
    assert message in line
    assert line.endswith("--help)")


def test_missing_and_wrong_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing, text = str(tmp_path / "nothing"), tmp_path / "text"
    text.write_text('{"not": "a trace"}', encoding="utf-8")
    assert main(["trace", "abc", "--weights", nothing]) == 2
    assert "there is nothing at" in only_line(capsys)
    assert main(["trace", "--replay", nothing]) == 2
    assert only_line(capsys) == f"llm_internals trace: No such file or directory: {nothing!r}"
    assert main(["trace", "--replay", str(text)]) == 2
    assert "format is missing" in only_line(capsys)
    assert main(["tokenize", "abc", "--weights", str(text)]) == 2
    assert "a GGUF file starts with" in only_line(capsys)


def test_text_that_the_model_has_no_tokens_for_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokenize", "a\x04b"]) == 2
    assert "can't encode '\\x04'" in only_line(capsys)
    assert main(["tokenize", "\udcff"]) == 2
    assert "lone surrogate" in only_line(capsys)


def test_an_empty_prompt_is_refused(tiny: LanguageModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", ""]) == 2
    assert "the prompt must have at least one character" in only_line(capsys)


def test_a_full_disk_is_one_line_and_exit_code_1(
    tiny: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    path = tmp_path / "trace.json"
    assert main(["trace", "abc", "--max-tokens", "1", "--json", str(path)]) == 1
    expected = f"llm_internals trace: can't write the file: No space left on device: {str(path)!r}\n"
    assert capsys.readouterr().err == expected


def test_ctrl_c_ends_with_130_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(path: Path | None) -> LanguageModel:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "load_checkpoint", interrupted)
    for arguments in (["trace", "abc"], ["chat"]):
        assert main(arguments) == 130
    assert capsys.readouterr() == ("", "")


class ClosedPipe(io.StringIO):
    """An output whose reader has gone."""

    def write(self, text: str) -> int:
        """Fail as a closed pipe does."""
        raise BrokenPipeError


@pytest.mark.parametrize("arguments", [["trace", "abc", "--max-tokens", "1"], ["tokenize", "abc"]])
def test_a_closed_pipe_ends_quietly(tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    error = io.StringIO()
    monkeypatch.setattr(sys, "stdout", ClosedPipe())
    monkeypatch.setattr(sys, "stderr", error)
    assert main(arguments) == 141
    assert error.getvalue() == ""


def test_an_output_without_the_characters_gets_question_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["tokenize", "a b"]) == 0
    assert b"?b" in raw.getvalue()


# Help


@pytest.mark.parametrize("command", ["trace", "chat"])
def test_help_explains_every_setting_with_its_range_and_default(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, _, metavar, meaning in SAMPLING_OPTIONS:
        assert f"--{name.replace('_', '-')} {metavar}" in text
        assert meaning in text
        assert re.search(r"at least|from 0 to 1|above 0|any number", meaning)
    assert all(engine in text for engine in ORDERS)


def test_every_setting_is_an_option() -> None:
    options = {name for name, *_ in SAMPLING_OPTIONS} | {"logit_bias", "banned_ids"}
    assert options == set(NEUTRAL)


def test_without_options_trace_samples_from_the_models_own_distribution() -> None:
    assert sampling_params(build_parser().parse_args(["trace", "abc"])) == SamplingParams()


# chat


def test_chat_answers_each_line_as_generate_does(
    lm: LanguageModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "load_checkpoint", lambda path: lm)
    monkeypatch.setattr("builtins.input", lines_read("What is the capital of Australia?", "  ", "/quit", "never read"))
    assert main(["chat", "--temperature", "0"]) == 0
    assert capsys.readouterr().out == "The capital of Australia is Canberra.\n"


def talked(lm: LanguageModel, *lines: str, max_tokens: int = 6, system: str | None = None) -> Conversation:
    """A conversation after some lines; a model without the template's tokens can't have one."""
    conversation = Conversation(lm, GREEDY, max_tokens, system=system)
    talk(terminal.make_console(), conversation, lines_read(*lines))
    return conversation


def test_the_cache_is_kept_across_turns_and_changes_no_answer(
    lm: LanguageModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    passes: list[int] = []
    real_forward = importlib.import_module("llm_internals.model").forward

    def counting(ids, *rest):
        passes.append(len(ids))
        return real_forward(ids, *rest)

    monkeypatch.setattr("llm_internals.model.forward", counting)
    conversation = talked(lm, "Hi", "And you?")
    assert [message["role"] for message in conversation.messages] == ["user", "assistant"] * 2
    prefills = [length for length in passes if length > 1]
    assert len(prefills) == 2
    assert prefills[1] < prefills[0], "the second turn reads only what is new"
    fresh = encode_chat(lm.tokenizer, conversation.messages[:3])
    steps = generate(lm, fresh, GREEDY, max_tokens=6)
    assert "".join(step.piece for step in steps) == conversation.messages[3]["content"]


def test_new_forgets_what_was_said_but_not_the_system_message(lm: LanguageModel) -> None:
    conversation = talked(lm, "Hi", "/new", max_tokens=1, system="Be brief.")
    assert conversation.messages == [{"role": "system", "content": "Be brief."}]


def test_ctrl_c_stops_an_answer_and_keeps_what_was_heard(lm: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = Conversation(lm, GREEDY, 50)
    console = terminal.make_console()
    heard: list[str] = []

    def interrupting(self: terminal.Terminal, text: str) -> None:
        heard.append(text)
        if len(heard) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(terminal.Terminal, "stream", interrupting)
    reply(console, conversation, "What is the capital of Australia?")
    assert conversation.messages[-1] == {"role": "assistant", "content": "".join(heard)}
    assert len(heard) == 3


def test_an_answer_that_was_cut_off_says_so(lm: LanguageModel, capsys: pytest.CaptureFixture[str]) -> None:
    talked(lm, "What is the capital of Australia?", max_tokens=2)
    assert "The capital\n(cut off: as many tokens as were asked for are there)" in capsys.readouterr().out


def test_a_line_that_cannot_be_answered_is_forgotten(lm: LanguageModel, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = talked(lm, "a\x04b", "word " * 9000)
    out = capsys.readouterr().out
    assert "The model has no tokens for that: can't encode" in out
    assert "there is room for 8192: /new begins another" in out
    assert conversation.messages == []


def test_control_characters_of_a_model_are_spelt_out(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.make_console().stream("red: \x1b[31m [bold] :smile:\tand\n\u202eback")
    assert capsys.readouterr().out == "red: \\u001b[31m [bold] :smile:\tand\n\\u202eback"


def test_a_cache_that_grows_keeps_what_it_holds() -> None:
    lm = random_language_model(context=4 * FIRST_CAPACITY)
    small = with_room(None, lm.config, 5)
    assert small.capacity == FIRST_CAPACITY
    assert with_room(small, lm.config, FIRST_CAPACITY) is small
    ids = [3, 4, 5, 6]
    first = list(generate(lm, ids, GREEDY, max_tokens=3, cache=small))
    large = with_room(small, lm.config, FIRST_CAPACITY + 1)
    assert (large.capacity, large.ids) == (2 * FIRST_CAPACITY, small.ids)
    longer = [*ids, *(step.id for step in first)]
    with_cache = list(generate(lm, longer, GREEDY, max_tokens=3, cache=large, stop_ids=()))
    without = list(generate(lm, longer, GREEDY, max_tokens=3, stop_ids=()))
    assert [step.id for step in with_cache] == [step.id for step in without]
    assert with_room(large, lm.config, 4 * FIRST_CAPACITY).capacity == 4 * FIRST_CAPACITY, "never beyond the context"
