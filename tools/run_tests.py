"""Run every check of the project, or those that are named, and print the time of each.

    python -m tools.run_tests              # all of them: what `make test` does
    python -m tools.run_tests lint unit    # two of them

A stage that fails doesn't keep the next ones from running, so that one run shows all that is wrong. The exit code is 1
if any failed. Where the machine has no Chromium, the stage `pages` is left out with one line; with CI=true in the
environment that counts as a failure.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.browser import PROGRAMS, find_chromium

ROOT = Path(__file__).resolve().parent.parent
OLD_CPU = (("ATEN_CPU_CAPABILITY", "default"), ("ONEDNN_MAX_CPU_ISA", "SSE41"))
"""Makes torch compute as on a CPU of 2008, to see that no stored output depends on the CPU."""


@dataclass(frozen=True)
class Stage:
    """One check: its name, what it tells about, its commands and what they need."""

    name: str
    about: str
    commands: tuple[tuple[str, ...], ...]
    environment: tuple[tuple[str, str], ...] = ()
    needs_browser: bool = False
    by_default: bool = True


def notebooks() -> tuple[str, ...]:
    """The chapters, in order; a name that starts with an underscore is no chapter."""
    return tuple(str(path.relative_to(ROOT)) for path in sorted((ROOT / "book").glob("[!_]*.ipynb")))


def stages() -> tuple[Stage, ...]:
    """All stages in the order in which they run."""
    ruff = (sys.executable, "-m", "ruff")
    pytest = (sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist")
    jupyter_book = (str(Path(sys.executable).parent / "jupyter-book"),)
    compare = (*pytest, "loadscope", "--nbval", "--nbval-current-env", *notebooks())
    clean = (*jupyter_book, "clean", ".")  # no page of yesterday, and every warning again
    build = (*jupyter_book, "build", ".", "-W", "-n", "--keep-going", "--quiet")
    return (
        Stage("lint", "ruff: rules and format", ((*ruff, "check"), (*ruff, "format", "--check"))),
        Stage("unit", "tests and doctests, every shape checked", ((*pytest, "loadscope"),)),
        Stage("notebooks", "stored outputs against a fresh run", (compare,)),
        Stage("old-cpu", "the same as on an old CPU", (compare,), environment=OLD_CPU, by_default=False),
        Stage("book", "the pages, warnings are errors", (clean, build)),
        Stage("pages", "every page in Chromium", ((*pytest, "loadgroup", "tests/pages"),), needs_browser=True),
    )


def run(stage: Stage) -> bool:
    """Run a stage's commands one after the other; whether all of them succeeded.

    Kernels find the package that stands in this folder, installed or not.
    """
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": search} | dict(stage.environment)
    codes = [
        subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False).returncode
        for command in stage.commands
    ]
    return not any(codes)


def run_all(chosen: Sequence[Stage], *, browser: bool, strict: bool) -> list[tuple[Stage, str, float]]:
    """Run stages and return how each ended, with its seconds."""
    results = []
    for stage in chosen:
        print(f"\n=== {stage.name}: {stage.about}", flush=True)
        begin = time.monotonic()
        if stage.needs_browser and not browser:
            result = "FAILED" if strict else "left out"
            print(f"{result}: no Chromium on this machine, looked for {', '.join(PROGRAMS)}", flush=True)
        else:
            result = "ok" if run(stage) else "FAILED"
        results.append((stage, result, time.monotonic() - begin))
    return results


def main() -> int:
    """Read the command line, run the stages, print the table of times."""
    known = {stage.name: stage for stage in stages()}
    parser = argparse.ArgumentParser(description="Run the checks of the project.")
    names = ", ".join(known)
    parser.add_argument("stages", nargs="*", metavar="stage", help=f"any of {names}; default: all but old-cpu")
    chosen = parser.parse_args().stages or [stage.name for stage in known.values() if stage.by_default]
    if unknown := set(chosen) - set(known):
        parser.error(f"stage must be one of {names}, but is {', '.join(sorted(unknown))}")
    strict = os.environ.get("CI") == "true"
    results = run_all([known[name] for name in chosen], browser=find_chromium() is not None, strict=strict)
    print("\n=== time of each stage")
    for stage, result, seconds in results:
        print(f"{stage.name:<10} {seconds:7.1f} s  {result:<8}  {stage.about}")
    print(f"{'all':<10} {sum(seconds for _, _, seconds in results):7.1f} s", flush=True)
    return int(any(result == "FAILED" for _, result, _ in results))


if __name__ == "__main__":
    sys.exit(main())
