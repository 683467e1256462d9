"""The runner of all checks: a failure is never lost, and what can't run is said."""

import sys

import pytest

from tools.run_tests import Stage, run_all, stages


def stage(name: str, *programs: str, **options: bool) -> Stage:
    """A stage that runs short programs."""
    return Stage(name, "a test", tuple((sys.executable, "-c", program) for program in programs), **options)


def results(*chosen: Stage, browser: bool = True, strict: bool = False) -> dict[str, str]:
    """How each stage ended."""
    return {stage.name: result for stage, result, _ in run_all(chosen, browser=browser, strict=strict)}


def test_a_failure_doesnt_keep_later_stages_from_running() -> None:
    assert results(stage("a", "1"), stage("b", "exit(3)", "1"), stage("c", "1")) == {
        "a": "ok",
        "b": "FAILED",
        "c": "ok",
    }


@pytest.mark.parametrize(("strict", "result"), [(False, "left out"), (True, "FAILED")])
def test_without_a_browser_its_stage_is_left_out_in_one_line_and_fails_in_ci(
    strict: bool, result: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = stage("pages", "raise AssertionError('must not run')", needs_browser=True)
    assert results(pages, browser=False, strict=strict) == {"pages": result}
    assert len([line for line in capsys.readouterr().out.splitlines() if "no Chromium" in line]) == 1


def test_a_stage_has_one_thread_and_its_own_environment() -> None:
    program = "import os; assert os.environ['OMP_NUM_THREADS'] == '1' and os.environ['KIND'] == 'old'"
    own = Stage("a", "a test", ((sys.executable, "-c", program),), environment=(("KIND", "old"),))
    assert results(own) == {"a": "ok"}


def test_a_full_run_has_every_stage_but_the_second_run_of_the_notebooks() -> None:
    assert [stage.name for stage in stages() if stage.by_default] == ["lint", "unit", "notebooks", "book", "pages"]
