"""Stage 8: the text of a JSON file -> values that have been checked, or one error that names the key.

A trace may come from anywhere, so nothing in it is believed: not that a key is there, not that a number is a number.
A `Value` knows where in the file it stands; each of its methods says what it must be and returns it, or raises.

Leaves out schemas: what a trace holds is said once, where its parts are read.

Chapter: ``00_one_response``.
Source: RFC 8259, "The JavaScript Object Notation (JSON) data interchange format", sections 4 (names should be unique)
and 6 (no NaN, no infinity); Python's ``json``, ``JSONDecoder``.
"""

import json
import math
import reprlib
from dataclasses import dataclass
from typing import Any


class TraceError(ValueError):
    """What was read is no trace; the message names the key, what is allowed there, and what was found."""


@dataclass(frozen=True)
class Value:
    """A value in a JSON file that hasn't been checked yet.

    Parameters
    ----------
    key : str
        Where it stands, as ``steps[3].lens[0].rank``.
    raw : object
        As ``json`` read it.

    Examples
    --------
    >>> step = parse_json('{"id": 7, "u": 1.5}').fields("id", "u")
    >>> step["id"].integer(low=0)
    7
    >>> step["u"].number(low=0.0, high=1.0)
    Traceback (most recent call last):
        ...
    llm_internals.trace.checked_json.TraceError: u must be a finite number in [0.0, 1.0], but is 1.5
    """

    key: str
    raw: Any

    def error(self, wanted: str) -> TraceError:
        """The error that says what had to stand here."""
        return TraceError(f"{self.key or 'the file'} must be {wanted}, but is {reprlib.repr(self.raw)}")

    def fields(self, *names: str) -> dict[str, "Value"]:
        """The values of an object that has these keys and no others."""
        found = self.entries()
        for name in names:
            if name not in found:
                raise TraceError(f"{self._below(name)} is missing")
        for name in found:
            if name not in names:
                raise TraceError(f"{self._below(name)} isn't part of a trace")
        return found

    def entries(self) -> dict[str, "Value"]:
        """The values of an object, whatever its keys."""
        if not isinstance(self.raw, dict):
            raise self.error("an object")
        return {name: Value(self._below(name), value) for name, value in self.raw.items()}

    def items(self, length: int | None = None) -> list["Value"]:
        """The values of a list, which has to have this length if one is given."""
        if not isinstance(self.raw, list):
            raise self.error("a list")
        if length is not None and len(self.raw) != length:
            raise TraceError(f"{self.key} must have {length} entries, but has {len(self.raw)}")
        return [Value(f"{self.key}[{index}]", value) for index, value in enumerate(self.raw)]

    def integer(self, low: int, high: int | None = None) -> int:
        """A whole number of at least ``low`` and at most ``high``."""
        if type(self.raw) is not int or self.raw < low or (high is not None and self.raw > high):
            raise self.error(f"an integer of at least {low}" if high is None else f"an integer in [{low}, {high}]")
        return self.raw

    def number(self, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number of at least ``low`` and at most ``high``."""
        try:
            number = float(self.raw) if type(self.raw) in (int, float) else math.nan
        except OverflowError:  # a whole number beyond the largest float
            number = math.inf
        if not (low <= number <= high and math.isfinite(number)):
            raise self.error(f"a finite number in [{low}, {high}]")
        return number

    def text(self) -> str:
        """A string."""
        if not isinstance(self.raw, str):
            raise self.error("a string")
        return self.raw

    def one_of(self, *choices: Any) -> Any:
        """One of a few values, of the same type; ``None`` stands for null."""
        if not any(type(self.raw) is type(choice) and self.raw == choice for choice in choices):
            raise self.error(f"one of {', '.join(json.dumps(choice) for choice in choices)}")
        return self.raw

    def _below(self, name: str) -> str:
        """The key of a field; a name from a file may be long, so it is cut."""
        short = name if len(name) <= 40 else f"{name[:40]}..."
        return f"{self.key}.{short}" if self.key else short


def parse_json(text: str) -> Value:
    """Read the text of a JSON file.

    Raises
    ------
    TraceError
        If it isn't JSON, holds NaN or infinity, a number or a depth beyond Python's limits, or has a key twice.
    """
    try:
        return Value("", json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant))
    except TraceError:
        raise
    except (ValueError, RecursionError) as error:
        raise TraceError(f"the file must hold JSON, but does not: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of two equal keys Python would keep the last and other readers the first."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise TraceError(f"the key {reprlib.repr(name)} stands twice in one object")
        found[name] = value
    return found


def _no_constant(name: str) -> None:
    raise TraceError(f"numbers must be finite, but the file holds {name}")
