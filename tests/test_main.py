"""The command line as a process of its own: streams, signals, exit codes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMMAND = [sys.executable, "-m", "llm_internals"]
TIMEOUT = 120
"""Seconds that a process may take on a busy machine; it takes five."""


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    """Run a command to its end."""
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, cwd=ROOT, env=environment, timeout=TIMEOUT, check=False, **options
    )


def test_a_trace_is_printed_and_written(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run("trace", "The capital of Australia is", "--temperature", "0", "--max-tokens", "1", "--html", str(page))
    assert (result.returncode, result.stderr) == (0, b"")
    assert "nothing is drawn, the largest score wins: ␣Sydney" in result.stdout.decode()
    assert page.stat().st_size > 10_000


def test_a_bad_value_is_a_line_on_stderr_and_exit_code_2() -> None:
    result = run("trace", "abc", "--top-p", "2")
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode().splitlines() == ["llm_internals trace: top_p must be a number in [0, 1], got 2.0"]


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen([*COMMAND, "tokenize", "a b c " * 20_000], stdout=-1, stderr=-1, cwd=ROOT) as process:
        assert process.stdout.readline().split()[0] == b"position"
        process.stdout.close()
        assert (process.wait(TIMEOUT), process.stderr.read()) == (141, b"")


def test_ctrl_c_between_two_lines_of_a_chat_ends_it_without_a_traceback() -> None:
    with subprocess.Popen(
        [*COMMAND, "chat", "--max-tokens", "1"],
        stdin=-1,
        stdout=-1,
        stderr=-1,
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # where tests run in the background, it's off
    ) as process:
        process.stdin.write(b"Hi\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert (process.wait(TIMEOUT), process.stderr.read()) == (130, b"")
