"""Times of several ways to do the same, taken in turn, so that a busy moment of the machine hits all of them."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Spread(NamedTuple):
    """A median with the quarter and the three quarters below which the rest lies."""

    median: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """The median, then the two quartiles in brackets, each by ``spec``."""
        return f"{self.median:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


def spread(numbers: list[float]) -> Spread:
    """Median and quartiles; of a single number it is that number."""
    if len(numbers) == 1:
        return Spread(*numbers * 3)
    low, median, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return Spread(median, low, high)


def seconds(run: Callable[[], object]) -> float:
    """Time one call."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def interleaved(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Spread]:
    """Seconds of each way over the rounds, one call of each in turn."""
    taken = [{name: seconds(run) for name, run in ways.items()} for _ in range(rounds)]
    return {name: spread([times[name] for times in taken]) for name in ways}
