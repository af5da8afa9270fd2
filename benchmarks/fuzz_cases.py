"""What all kinds of generated cases share: how a case is run and evaluated, odd values, ways to damage
files.

A case is a function of a random generator alone, which is made from its kind and its seed. It ends in one of
these outcomes:

- ok: it worked, and every property that was checked holds;
- refused: a `MoewError` that says why (for the command line: exit status 1 or 2 and one line);
- error from inside: any other error. scikit-learn's own ValueError about rows to predict is none, and what a
  function of the user's raises is the user's, so the generated ones raise nothing where it would be shown;
- wrong answer: it worked, but a property does not hold, or input that is sound was refused;
- hang, crash: found by the process that waits for the case, see benchmarks/fuzz.py.
"""

from __future__ import annotations

import math
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from moew.exceptions import MoewError
from moew.types import Array

OK, REFUSED = "ok", "refused"
INSIDE, WRONG, HANG, CRASH = "error from inside", "wrong answer", "hang", "crash"
FINDINGS = (INSIDE, WRONG, HANG, CRASH)

# Where the function of each kind is, and its share of the cases in percent. Files and stores are damaged in
# more ways than a fit can be called in, and take less time.
KINDS = {
    "fit": ("fuzz_fit:fit_case", 17),
    "compare": ("fuzz_compare:compare_case", 3),
    "study": ("fuzz_studies:study_case", 12),
    "command line": ("fuzz_command_line:command_line_case", 6),
    "readers": ("fuzz_readers:reader_case", 17),
    "loaders": ("fuzz_loaders:loader_case", 22),
    "stores": ("fuzz_stores:store_case", 23),
}

Case = Callable[[np.random.Generator], None]
Picked = TypeVar("Picked")


class WrongAnswer(Exception):  # noqa: N818  (it is what was found, not what went wrong here)
    """A property of a result does not hold."""


@dataclass(frozen=True)
class Record:
    """How a case ended."""

    kind: str
    seed: int
    outcome: str
    message: str
    seconds: float

    @property
    def name(self) -> str:
        """What `--only` takes."""
        return f"{self.kind}:{self.seed}"


def generator_of(kind: str, seed: int) -> np.random.Generator:
    """All chance of a case."""
    return np.random.default_rng([zlib.crc32(kind.encode()), seed])


def find_case(place: str) -> Case:
    """The function that `place`, "module:function", names."""
    module, _, name = place.partition(":")
    case: Case = getattr(import_module(module), name)
    return case


def run_case(kind: str, seed: int, place: str) -> Record:
    """Run a case and judge how it ends."""
    case, begun = find_case(place), perf_counter()
    outcome, message = OK, ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of models that do not converge, of rows without a class, …
            case(generator_of(kind, seed))
    except MoewError as error:
        outcome, message = REFUSED, f"{type(error).__name__}: {error}"
        if not str(error).strip():
            outcome, message = WRONG, f"a {type(error).__name__} without a message"
    except WrongAnswer:
        outcome, message = WRONG, traceback.format_exc()
    except Exception:
        outcome, message = INSIDE, traceback.format_exc()
    return Record(kind, seed, outcome, message, round(perf_counter() - begun, 4))


@contextmanager
def checking(what: str) -> Iterator[None]:
    """Context of what must work after a success: there, a refusal is a finding, too."""
    try:
        yield
    except WrongAnswer:
        raise
    except Exception as error:
        raise WrongAnswer(f"{what}: {type(error).__name__}: {error}") from error


def expect(holds: Any, what: str) -> None:
    """Raise a finding unless a property holds."""
    if not holds:
        raise WrongAnswer(what)


def expect_same(got: Any, wanted: Any, what: str) -> None:
    """Raise a finding unless two arrays, or numbers, are the same bits; NaN is NaN."""
    one, other = np.asarray(got), np.asarray(wanted)
    same = one.shape == other.shape and _equal(one, other)
    expect(same, f"{what}: {got!r} is not {wanted!r}")


def expect_close(got: Any, wanted: Any, what: str, rtol: float = 1e-9, atol: float = 1e-12) -> None:
    """Raise a finding unless numbers are the same but for rounding."""
    close = np.shape(got) == np.shape(wanted) and np.allclose(
        got, wanted, rtol=rtol, atol=atol, equal_nan=True
    )
    expect(close, f"{what}: {got!r} is not {wanted!r}")


def _equal(one: Array, other: Array) -> bool:
    if one.dtype.kind == "f" and other.dtype.kind == "f":
        return bool(np.array_equal(one, other, equal_nan=True))
    return bool(np.array_equal(one, other))


def pick(rng: np.random.Generator, options: Sequence[Picked]) -> Picked:
    """One of the options, whatever they are."""
    return options[int(rng.integers(len(options)))]


def chance(rng: np.random.Generator, share: float) -> bool:
    """True in that share of the cases."""
    return bool(rng.random() < share)


class Unprintable:
    """An object whose text is long and has control characters."""

    def __repr__(self) -> str:
        return "\x1b[31m" + "odd " * 2000


ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 10**30, -(10**30), 10**400, 0.0, -0.0, 0.5, -0.5, 1e308, 1e-308, 5e-324,
    math.nan, math.inf, -math.inf, 1j, "", "x", "1", "nan", "ball", "\x00", "a\nb", "𝛼", b"x", (), [], {},
    [1], (1, 2), {"a": 1}, {1, 2}, [None], ["x"], [[1.0], [2.0]], object, object(), len, lambda: 0,
    np.float32(0.5), np.int8(3), np.uint64(2**64 - 1), np.nan, np.array(2), np.array([]),
    np.array([1.0, 2.0]),
    np.array(["a"]), np.zeros((2, 2)), np.datetime64("2020-01-01"), np.ma.masked, range(3), slice(1),
    Ellipsis, NotImplemented, ValueError("x"), Unprintable(),
)  # fmt: skip


def odd_value(rng: np.random.Generator) -> Any:
    """A value that hardly any argument takes."""
    return pick(rng, ODD)


def damaged_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """The bytes with one to four damages: flipped bits, other bytes, parts cut, doubled, zeroed or moved."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        data = _DAMAGES[int(rng.integers(len(_DAMAGES)))](rng, data)
    return data


def _place(rng: np.random.Generator, data: bytes, longest: int = 200) -> tuple[int, int]:
    start = int(rng.integers(len(data) + 1))
    return start, min(len(data), start + int(rng.integers(1, longest)))


def _flipped_bit(rng: np.random.Generator, data: bytes) -> bytes:
    if not data:
        return b"\x01"
    changed, where = bytearray(data), int(rng.integers(len(data)))
    changed[where] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _other_byte(rng: np.random.Generator, data: bytes) -> bytes:
    changed, where = bytearray(data or b"x"), int(rng.integers(max(1, len(data))))
    changed[where] = pick(rng, [*b'\x00\xff\n\r",;{}[]0123456789.-eENaA \t', int(rng.integers(256))])
    return bytes(changed)


def _without(rng: np.random.Generator, data: bytes) -> bytes:
    start, stop = _place(rng, data)
    return data[:start] + data[stop:]


def _cut(rng: np.random.Generator, data: bytes) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def _doubled(rng: np.random.Generator, data: bytes) -> bytes:
    start, stop = _place(rng, data)
    return data[:stop] + data[start:stop] + data[stop:]


def _zeroed(rng: np.random.Generator, data: bytes) -> bytes:
    start, stop = _place(rng, data)
    return data[:start] + bytes(stop - start) + data[stop:]


def _noise(rng: np.random.Generator, data: bytes) -> bytes:
    start, stop = _place(rng, data, 40)
    return data[:start] + rng.bytes(stop - start) + data[stop:]


def _moved(rng: np.random.Generator, data: bytes) -> bytes:
    start, stop = _place(rng, data)
    rest = data[:start] + data[stop:]
    where = int(rng.integers(len(rest) + 1))
    return rest[:where] + data[start:stop] + rest[where:]


def _empty(_: np.random.Generator, __: bytes) -> bytes:
    return b""


_DAMAGES: tuple[Callable[[np.random.Generator, bytes], bytes], ...] = (
    *(_flipped_bit, _flipped_bit, _other_byte, _other_byte, _other_byte),
    *(_without, _cut, _doubled, _zeroed, _noise, _moved),
)  # fmt: skip


def damaged_lines(rng: np.random.Generator, data: bytes) -> bytes:
    """The lines of a text with some deleted, swapped, doubled or moved to the end."""
    lines = data.splitlines(keepends=True)
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        if not lines:
            break
        here, there = (int(k) for k in rng.integers(len(lines), size=2))
        what = pick(rng, ["delete", "swap", "double", "to the end", "cut after", "several"])
        if what == "delete":
            del lines[here]
        elif what == "swap":
            lines[here], lines[there] = lines[there], lines[here]
        elif what == "double":
            lines.insert(there, lines[here])
        elif what == "to the end":
            lines.append(lines.pop(here))
        elif what == "cut after":
            lines = lines[: here + 1]
        else:
            del lines[min(here, there) : max(here, there)]
    return b"".join(lines)


_ODD_JSON: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 10**20, 0.5, 1e308, -1e-300, math.nan, math.inf, "", "x", "0.5",
    "moew.weighting:WeightFunction", "os:system", "../../etc/passwd", "\x00", [], {}, [1], [[]], {"a": 1},
    ["x", "y"], [0.5] * 40,
)  # fmt: skip


def damaged_json(rng: np.random.Generator, value: Any) -> Any:
    """The JSON value with one to three entries replaced, deleted, doubled or renamed."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        value = _damaged_once(rng, value)
    return value


def _damaged_once(rng: np.random.Generator, value: Any) -> Any:
    deeper = isinstance(value, dict | list) and len(value) > 0 and not chance(rng, 0.12)
    if not deeper:
        return _other_json(rng, value)
    changed = dict(value) if isinstance(value, dict) else list(value)
    keys = list(changed) if isinstance(changed, dict) else list(range(len(changed)))
    key = pick(rng, keys)
    what = pick(rng, ["change"] * 8 + ["delete", "double"])
    if what == "delete":
        del changed[key]
    elif what == "double" and isinstance(changed, dict):
        changed[f"{key} "] = changed[key]
    elif what == "double" and isinstance(changed, list):
        changed.append(changed[key])
    else:
        changed[key] = _damaged_once(rng, changed[key])
    return changed


def _other_json(rng: np.random.Generator, value: Any) -> Any:
    if isinstance(value, bool) and chance(rng, 0.5):
        return not value
    if isinstance(value, int | float) and chance(rng, 0.6):
        return pick(rng, [-value, value + 1, value * 2, value / 3, value * 1e30])
    if isinstance(value, str) and value and chance(rng, 0.6):
        where = int(rng.integers(len(value)))
        letter = pick(rng, ["", "x", "0", " ", value[where] * 2, "é"])
        return value[:where] + letter + value[where + 1 :]
    return pick(rng, _ODD_JSON)
