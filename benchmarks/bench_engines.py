"""What a token costs: transformers, the package in float32 and packed, and llama.cpp, on the same weights.

``python -m benchmarks.bench_engines [--rounds 5] [--save]`` runs each engine in a process of its own, one after the
other, several rounds, and prints medians with quartiles and the ratios that the project promises. Two engines in one
process, or a busy neighbour, spoil the numbers. llama.cpp takes part if llama-cpp-python is installed
(``benchmarks/requirements.txt``; it compiles for minutes).
Read the ratios: milliseconds are those of this machine at this moment. ``--save`` keeps them for the book.
"""

import argparse
import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import torch
from rich.progress import track

from benchmarks.engine_process import ENGINES, THREADS
from benchmarks.timing import Spread, interleaved, spread
from llm_internals import load_checkpoint
from llm_internals.cost import kv_bytes, weight_bytes
from llm_internals.model import named_weights
from tests.reference import transformers_model

RESULTS = Path(__file__).parents[1] / "book" / "data" / "engines.json"
ROUNDS = 5
BANDWIDTH_NUMBERS = 100_000_000
BANDWIDTH_ROUNDS = 15

Figures = dict[str, dict[str, Spread]]


def main() -> None:
    """Run, print, and save if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of each engine, at least 1 (5)")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} for the book")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"--rounds must be at least 1, but is {arguments.rounds}")
    engines = [name for name in ENGINES if name != "llama.cpp" or importlib.util.find_spec("llama_cpp")]
    with tempfile.TemporaryDirectory() as folder:
        file_bytes = save_for_transformers(folder)
        figures = run_engines(engines, folder, arguments.rounds)
    report = {
        "date": datetime.date.today().isoformat(),
        "cpu": processor(),
        "kernels": torch.backends.cpu.get_cpu_capability(),
        "threads": THREADS,
        "versions": {name: version(name) for name in ("torch", "transformers", "llama_cpp_python") if installed(name)},
        "bandwidth_gb_s": read_bandwidth()._asdict(),
        "bytes_a_token": file_bytes,
        "engines": {name: {what: s._asdict() for what, s in row.items()} for name, row in figures.items()},
    }
    show(report, figures)
    if arguments.save:
        RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"saved in {RESULTS}")


def save_for_transformers(folder: str) -> dict[str, int]:
    """Write the float32 weights as [out, in] safetensors; return the bytes that a step reads in each form."""
    lm = load_checkpoint()
    model = transformers_model(lm.weights)
    apart = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in model.state_dict().items()}
    model.load_state_dict(apart, assign=True)
    model.tie_weights()
    model.save_pretrained(folder)
    packed = load_checkpoint(weights="packed")
    held = sum(matrix.nbytes for _, matrix in named_weights(packed.weights)) - packed.weights.lm_head.blocks.nbytes
    return {
        "float32": weight_bytes(lm.config),
        "packed": held,
        "file": weight_bytes(lm.config, block_bits=5, output_bits=8.5),
        "key and value a position": kv_bytes(lm.config),
    }


def run_engines(engines: list[str], folder: str, rounds: int) -> Figures:
    """Every engine once a round, in turn; all numbers of an engine together."""
    numbers: dict[str, dict[str, list[float]]] = {name: {} for name in engines}
    for _ in track(range(rounds), "rounds"):
        for name in engines:
            for what, values in run_engine(name, folder).items():
                numbers[name].setdefault(what, []).extend(values)
    return {name: {what: spread(values) for what, values in row.items()} for name, row in numbers.items()}


def run_engine(name: str, folder: str) -> dict[str, list[float]]:
    """One process."""
    environment = os.environ | {"OMP_NUM_THREADS": str(THREADS), "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "benchmarks.engine_process", name, str(time.time()), folder]
    result = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    if result.returncode:
        raise SystemExit(f"{name} failed:\n{result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


def read_bandwidth() -> Spread:
    """GB a second at which a sum over 400 MB of float32 reads memory."""
    torch.set_num_threads(THREADS)
    numbers = torch.ones(BANDWIDTH_NUMBERS)
    taken = interleaved({"sum": numbers.sum}, BANDWIDTH_ROUNDS)["sum"]
    median, low, high = (numbers.nbytes / 1e9 / taken[quartile] for quartile in (0, 2, 1))
    return Spread(median, low, high)


def processor() -> str:
    """Its name, as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def installed(package: str) -> bool:
    """Whether a distribution is there."""
    return importlib.util.find_spec(package.replace("_python", "")) is not None


def show(report: dict, figures: Figures) -> None:
    """Print the table, the ratios, and what memory allows."""
    print(f"{report['cpu']} ({report['kernels']}), {THREADS} threads, {report['date']}; {report['versions']}")
    print("median [lower quartile, upper quartile]")
    print(f"{'':15}{'decode, ms a token':>26}{'tokens / s':>12}{'prefill of 512, ms':>28}{'to the first token, s':>26}")
    for name, row in figures.items():
        decode = row["decode_ms"]
        print(
            f"{name:15}{decode:>8.2f}{1000 / decode.median:10.1f}{row['prefill_512_ms']:>10.0f}"
            f"{row['first_token_s']:>10.2f}"
        )
    medians = {name: {what: s.median for what, s in row.items()} for name, row in figures.items()}
    theirs, plain, packed = (medians[name] for name in ("transformers", "ours, float32", "ours, packed"))
    print("\nratios (above 1: ours is faster)")
    print(f"  decode, float32 to transformers         {theirs['decode_ms'] / plain['decode_ms']:6.2f}   (aim 1.4)")
    print(f"  decode, packed to transformers          {theirs['decode_ms'] / packed['decode_ms']:6.2f}   (aim 6)")
    if "llama.cpp" in medians:
        ratio = medians["llama.cpp"]["decode_ms"] / packed["decode_ms"]
        print(f"  decode, packed to llama.cpp             {ratio:6.2f}   (aim 1)")
    else:
        print("  llama.cpp isn't installed: pip install -r benchmarks/requirements.txt (it compiles for minutes)")
    ratio = theirs["prefill_512_ms"] / plain["prefill_512_ms"]
    print(f"  prefill of 512, float32 to transformers {ratio:6.2f}   (aim 1)")
    ratio = theirs["first_token_s"] / packed["first_token_s"]
    print(f"  start to first token, packed to theirs  {ratio:6.2f}   (aim above 1)")
    roofline(report, medians)


def roofline(report: dict, medians: dict[str, dict[str, float]]) -> None:
    """Print how near each engine comes to the time that reading its weights takes."""
    bandwidth = report["bandwidth_gb_s"]["median"]
    print(f"\nmemory gives {bandwidth:.1f} GB/s to a sum; a step reads its weights once")
    forms = {"transformers": "float32", "ours, float32": "float32", "ours, packed": "packed", "llama.cpp": "file"}
    for name, row in medians.items():
        size = report["bytes_a_token"][forms[name]]
        limit = size / 1e6 / bandwidth
        share = limit / row["decode_ms"]
        print(f"  {name:15}{size / 1e6:8.1f} MB{limit:8.2f} ms at least{share:8.0%} of the limit's speed")


if __name__ == "__main__":
    main()
