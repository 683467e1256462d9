"""What starting costs: `import llm_internals`, and the weights file as float32 or packed, each in a fresh process.

``python -m benchmarks.bench_load`` prints medians with quartiles over interleaved rounds, beside ``import torch``, the
``gguf`` package reading the same file's metadata, and the memory that each takes at its peak.
Read the ratios: seconds are those of this machine at this moment.
"""

import os
import subprocess
import sys

from rich.progress import track

from benchmarks.timing import spread
from llm_internals.weights_file import find_weights

ROUNDS = 5
PEAK = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)"  # MB on Linux
TIMED = "import time; start = time.perf_counter()\n{}\nprint(time.perf_counter() - start)" + PEAK
PROGRAMS = {
    "import torch": "import torch",
    "import llm_internals": "import llm_internals",
    "import transformers' Llama": "from transformers import LlamaForCausalLM",
    "metadata by the gguf package": "import gguf; gguf.GGUFReader({path!r})",
    "metadata by read_gguf": "from llm_internals.gguf import read_gguf; read_gguf({path!r})",
    "load_checkpoint, float32": "import llm_internals; llm_internals.load_checkpoint({path!r})",
    "load_checkpoint, packed": "import llm_internals; llm_internals.load_checkpoint({path!r}, weights='packed')",
}


def main() -> None:
    """Print a row for each program."""
    path = str(find_weights())
    numbers: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    for _ in track(range(ROUNDS), "rounds"):
        for name, program in PROGRAMS.items():
            numbers[name].append(run(TIMED.format(program.format(path=path))))
    print(f"{'':32}{'seconds':>24}{'peak MB':>10}")
    for name, pairs in numbers.items():
        times, peaks = zip(*pairs, strict=True)
        print(f"{name:32}{spread(list(times)):>8.2f}{spread(list(peaks)).median:10.0f}")


def run(program: str) -> tuple[float, float]:
    """Seconds and peak megabytes of a program in a process of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=True)
    taken, peak = result.stdout.splitlines()[-2:]
    return float(taken), float(peak)


if __name__ == "__main__":
    main()
