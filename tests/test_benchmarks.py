"""`benchmarks`: that times are summed up rightly, and that each program is there for `make bench` to find."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import engine_process
from benchmarks.bench_engines import ENGINES, processor, run_engine
from benchmarks.timing import Spread, interleaved, spread

FOLDER = Path(__file__).parents[1] / "benchmarks"


def test_a_spread_is_the_median_with_both_quartiles():
    assert spread([5.0, 1.0, 4.0, 2.0, 3.0]) == Spread(3.0, 2.0, 4.0)
    assert spread([7.0]) == Spread(7.0, 7.0, 7.0)
    assert f"{Spread(3.0, 2.0, 4.0):.1f}" == "3.0 [2.0, 4.0]"


def test_ways_take_turns():
    calls = []
    taken = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3)
    assert calls == ["a", "b"] * 3
    assert set(taken) == {"a", "b"}


def test_the_time_of_a_token_is_that_of_many_less_that_of_one(monkeypatch):
    """On a clock of our own: a start of 9 s, 100 ms a prompt, 7 ms a token, 30 ms a prefill."""
    clock = SimpleNamespace(now=1000.0)
    clock.perf_counter = clock.time = lambda: clock.now

    def pass_by(seconds):
        clock.now += seconds

    monkeypatch.setattr(engine_process, "time", clock)
    numbers = engine_process.measure(lambda n: pass_by(0.1 + 0.007 * n), lambda: pass_by(0.03), started=991.0)
    assert numbers["first_token_s"] == pytest.approx([9.107])
    assert numbers["decode_ms"] == pytest.approx([7.0] * engine_process.REPEATS)
    assert numbers["prefill_512_ms"] == pytest.approx([30.0] * engine_process.REPEATS)


def test_an_engine_that_fails_is_named_with_its_error(monkeypatch):
    assert "ours, packed" in ENGINES
    with pytest.raises(SystemExit, match=r"(?s)no such engine failed:.*KeyError"):
        run_engine("no such engine", "")


def test_the_processor_has_a_name():
    assert processor()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("bench_*.py")), ids=lambda path: path.stem)
def test_each_program_of_make_bench_can_be_run_and_says_what_it_prints(path):
    module = importlib.import_module(f"benchmarks.{path.stem}")
    assert callable(module.main)
    assert f"python -m benchmarks.{path.stem}" in module.__doc__


def test_the_options_of_the_engines_are_explained():
    command = [sys.executable, "-m", "benchmarks.bench_engines", "--help"]
    text = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, cwd=FOLDER.parent).stdout
    assert "--rounds" in text
    assert "--save" in text
    wrong = subprocess.run([*command[:-1], "--rounds", "0"], capture_output=True, encoding="utf-8", cwd=FOLDER.parent)
    assert wrong.returncode == 2
    assert "--rounds must be at least 1, but is 0" in wrong.stderr
