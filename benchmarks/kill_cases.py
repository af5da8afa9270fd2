"""Searches that are killed and started again: what a case is, how it is run, and what is recorded of it."""

from __future__ import annotations

import contextlib
import json
import queue
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from killed_processes import Started, Starter, shared_memory_of, starters, wait_until
from killed_search import LOG, command, write_tables
from postgresql_server import NotInstalledError, postgresql_server

STORAGES = ("sqlite", "postgresql")
SIGNALS = ("KILL", "TERM", "INT")
EQUAL, OTHER, HANG, FAILED = "equal", "not equal", "hang", "failed"
OUTCOMES = (EQUAL, OTHER, HANG, FAILED)
_SHARE_OF_NEW_INTERPRETERS = 0.15
_SHARE_TO_ALL = {"KILL": 0.2, "TERM": 0.2, "INT": 0.5}  # of the signals, those that go to the whole group
_NUMBERS_OF_KILLS, _THEIR_SHARES = (1, 2, 3), (70, 20, 10)
_SECONDS_TO_END = 10.0  # after SIGTERM or SIGINT
_SECONDS_OF_WORKERS = 5.0  # that they may run after their parent
_SECONDS_OF_LATE_WORKERS = 60.0
_TRIES = 3  # of a case whose first signal comes after the search has ended
_SECONDS_OF_SEARCH = 180.0  # after which it hangs; it takes a few


@dataclass(frozen=True)
class Kill:
    """A signal, whether it goes to all processes, and when: a share of the uninterrupted search's time."""

    name: str
    to_all: bool
    moment: float

    @property
    def number(self) -> signal.Signals:
        return signal.Signals[f"SIG{self.name}"]


def process_of(fork: bool) -> str:
    """How a process is started, in words."""
    return "fork" if fork else "new interpreter"


@dataclass(frozen=True)
class Setting:
    """How a search is called and started."""

    storage: str
    n_jobs: int
    front: str  # "python" or "command line"
    fork: bool  # or a new interpreter

    @property
    def key(self) -> str:
        return f"{self.storage}, {self.n_jobs} jobs, {self.front}, {process_of(self.fork)}"


@dataclass(frozen=True)
class Case:
    """One search that is killed; everything about it follows from its seed."""

    seed: int
    setting: Setting
    kills: tuple[Kill, ...]


def draw_case(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(f"kills {seed}")
    storage = rng.choice(STORAGES)
    # The command line has the files of its run folders alone.
    front = rng.choice(("python", "command line")) if storage == "sqlite" else "python"
    setting = Setting(storage, rng.choice((1, 2)), front, rng.random() >= _SHARE_OF_NEW_INTERPRETERS)
    (n_kills,) = rng.choices(_NUMBERS_OF_KILLS, _THEIR_SHARES)
    kills = []
    for _ in range(n_kills):
        name = rng.choice(SIGNALS)
        kills.append(Kill(name, rng.random() < _SHARE_TO_ALL[name], rng.random()))
    return Case(seed, setting, tuple(kills))


def all_settings(storages: Sequence[str] = STORAGES) -> list[Setting]:
    """All settings that cases can have."""
    fronts = [(s, "python") for s in storages] + [("sqlite", "command line")] * ("sqlite" in storages)
    return [Setting(s, n, front, fork) for s, front in fronts for n in (1, 2) for fork in (True, False)]


@dataclass
class Uninterrupted:
    """A search that nothing interrupted."""

    setting: Setting
    seconds: float  # from its start to its end
    first_seconds: float  # from its start to the end of its first training
    trainings: int
    digests: dict[str, str]


@dataclass
class Tried:
    """A case that was run."""

    case: Case
    outcome: str
    reached: list[bool]  # for each kill, whether the search still ran
    seconds: float = 0.0  # from the first start to the first signal, or to the end if that was before
    seconds_to_end: list[float] = field(default_factory=list)  # of the search, after each signal
    seconds_of_workers: list[float] = field(
        default_factory=list
    )  # until the last process had ended, after that
    signals_lost: int = 0  # that came while Python ignores exceptions, and were sent again
    processes_left: int = 0  # that ran on for five seconds after their parent
    rows_left: int = 0  # folders of rows that were there when all processes had ended
    restart_seconds: list[float] = field(default_factory=list)  # until a training, or the result, was there
    trainings: int = 0  # of all starts together
    files_left: list[str] = field(default_factory=list)  # in the end, which the search does not need
    differing: list[str] = field(default_factory=list)
    said: str = ""  # by a search that failed


class Place:
    """The folder of a case: what is stored, a folder for temporary files, the log of trainings."""

    def __init__(self, folder: Path, setting: Setting, server: str | None) -> None:
        self.folder, self.setting, self._server = folder.absolute(), setting, server
        self.temporary, self.log, self.result = (self.folder / name for name in ("tmp", "log", "result"))
        self._parents: list[int] = []
        shutil.rmtree(folder, ignore_errors=True)
        self.temporary.mkdir(parents=True)
        self.log.touch()
        if setting.front == "command line":
            write_tables(self.folder)
        if setting.storage == "postgresql":
            self._database = f"case_{folder.name.replace('-', '_')}"
            self._administer(f"DROP DATABASE IF EXISTS {self._database} WITH (FORCE)")
            self._administer(f"CREATE DATABASE {self._database}")

    @property
    def storage(self) -> str:
        """The storage as the search is given it."""
        if self.setting.storage == "postgresql":
            assert self._server is not None
            return self._server.rpartition("/")[0] + f"/{self._database}"
        return "study.db"

    def start(self, processes: Starter, *more: str, result: Path | None = None) -> Started:
        """Start the search, or start it again, with more arguments; its digests go to `result`."""
        result = self.result if result is None else result
        result.unlink(missing_ok=True)
        arguments = ["search", self.storage, str(self.setting.n_jobs), str(result), *more]
        if self.setting.front == "command line":
            arguments = ["moew", *command(self.setting.n_jobs)]
        mark = f"{self.folder}-{time.monotonic_ns()}"
        environment = {"TMPDIR": str(self.temporary), LOG: str(self.log)}
        started = processes.start(arguments, self.folder, mark, environment, fork=self.setting.fork)
        self._parents.append(started.process)
        return started

    def digests(self, processes: Starter) -> dict[str, str]:
        """Digests of what came out of a search that has ended; none if nothing did."""
        run = self.folder / "run"
        if self.setting.front == "command line" and (run / "result.json").exists():
            environment = {"TMPDIR": str(self.temporary)}
            reader = processes.start(
                ["digest", str(run), str(self.result)], self.folder, "digest", environment
            )
            reader.wait(60)
            reader.end()
        if not self.result.exists():
            return {}
        found: dict[str, str] = json.loads(self.result.read_text(encoding="utf-8"))
        return found

    def events(self) -> list[tuple[int, float, str, str]]:
        """(process, time, event, what) of all lines of the log."""
        lines = [line.split(" ", 3) for line in self.log.read_text().splitlines()]
        return [(int(process), float(at), event, what) for process, at, event, what in lines]

    def first_training(self, since: float) -> float | None:
        """When the first training since then was done."""
        return next((at for _, at, event, _ in self.events() if event == "end" and at >= since), None)

    def n_trainings(self) -> int:
        return sum(event == "begin" for _, _, event, _ in self.events())

    def lost_a_signal(self) -> bool:
        """Whether a signal came while Python ran a function whose exceptions it ignores, such as one that is
        called when an object goes."""
        said = (self.folder / "said").read_text(errors="replace")
        return "Exception ignored" in said and "KeyboardInterrupt" in said

    def rows(self) -> int:
        """How many folders of rows there are."""
        return len(list(self.temporary.glob("moew-rows-*")))

    def left_behind(self) -> list[str]:
        """What there is besides the study and the result, after a search has ended by itself."""
        left = [f"tmp/{path.name}" for path in self.temporary.iterdir()]
        left += shared_memory_of(self._parents)
        own = {"tmp", "log", "result", "said", "train.csv", "valid.csv", "new.csv", "run"}
        names = [path.name for path in self.folder.iterdir()]
        left += [name for name in names if name not in own | {"study.db"}]
        left += [f"run/{path.name}" for path in (self.folder / "run").glob("*.new*")]
        left += [f"run/{path.name}" for path in (self.folder / "run").glob("*-journal")]
        if self.setting.storage == "postgresql":
            count = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{self._database}'"
            if not wait_until(lambda: self._administer(count) == 0, 5):
                left.append(f"{self._administer(count)} connections")
        return left

    def close(self, keep: bool) -> None:
        """Remove what the case has made, unless it is kept."""
        if self.setting.storage == "postgresql" and not keep:
            self._administer(f"DROP DATABASE IF EXISTS {self._database} WITH (FORCE)")
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _administer(self, statement: str) -> Any:
        import psycopg

        assert self._server is not None
        with psycopg.connect(self._server, autocommit=True) as connection:
            cursor = connection.execute(statement)
            row = cursor.fetchone() if cursor.description else None
            return None if row is None else row[0]


def uninterrupted(setting: Setting, folder: Path, processes: Starter, server: str | None) -> Uninterrupted:
    """Run a search that nothing interrupts."""
    place = Place(folder, setting, server)
    search = place.start(processes)
    ended = search.wait(_SECONDS_OF_SEARCH)
    seconds = time.monotonic() - search.began
    search.wait_for_all(_SECONDS_OF_WORKERS)
    search.end()
    digests = place.digests(processes)
    first = place.first_training(search.began)
    if not ended or not digests or first is None:
        sys.exit(f"the uninterrupted search failed ({setting.key}): see {place.folder}")
    if left := place.left_behind():
        print(f"an uninterrupted search leaves {left} ({setting.key})")
    found = Uninterrupted(setting, seconds, first - search.began, place.n_trainings(), digests)
    place.close(keep=False)
    return found


def run_case(
    case: Case, baseline: Uninterrupted, expected: dict[str, str], place: Place, processes: Starter
) -> Tried:
    """Run a search, kill it and start it again until it has ended by itself."""
    tried = Tried(case, EQUAL, [])
    for kill in case.kills:
        search = place.start(processes)
        ended = search.wait(kill.moment * baseline.seconds)
        tried.seconds = tried.seconds or time.monotonic() - search.began
        reached = not ended and search.send(kill.number, kill.to_all)
        sent = time.monotonic()
        is_dead = search.wait(_SECONDS_TO_END)
        if not is_dead and place.lost_a_signal():
            tried.signals_lost += 1
            search.send(kill.number, kill.to_all)
            is_dead = search.wait(_SECONDS_TO_END)
        seconds_to_end = time.monotonic() - sent
        _note_restart(tried, place, search, None if reached else sent)
        tried.reached.append(reached)
        if reached:
            tried.seconds_to_end.append(seconds_to_end)
            if not is_dead:
                tried.outcome = HANG
            seconds, left = search.wait_for_all(_SECONDS_OF_WORKERS)
            tried.processes_left += left
            if left:  # it is counted; what they would remove in the end is not left behind
                seconds += search.wait_for_all(_SECONDS_OF_LATE_WORKERS)[0]
            tried.seconds_of_workers.append(seconds)
            if kill.name != "KILL" or not kill.to_all:  # else there is nobody to remove them
                tried.rows_left += place.rows()
        search.end()
        if not reached:  # it has ended before: later kills would find a finished search
            break
    if any(tried.reached):
        search = place.start(processes)
        if not search.wait(_SECONDS_OF_SEARCH):
            tried.outcome = HANG
        _note_restart(tried, place, search, time.monotonic())
        _, left = search.wait_for_all(_SECONDS_OF_WORKERS)
        tried.processes_left += left
        search.end()
    tried.trainings = place.n_trainings()
    digests = place.digests(processes)
    tried.files_left = place.left_behind()
    compare(tried, digests, expected)
    if tried.outcome != EQUAL:
        tried.said = (place.folder / "said").read_text(errors="replace")[-2000:]
    return tried


def compare(tried: Tried, digests: dict[str, str], expected: dict[str, str]) -> None:
    """Note what differs from the uninterrupted search."""
    tried.differing = [name for name in expected if digests.get(name) != expected[name]]
    if tried.outcome == EQUAL and tried.differing:
        tried.outcome = OTHER if digests else FAILED


def _note_restart(tried: Tried, place: Place, search: Started, ended: float | None) -> None:
    """Note how long a search that was started again took to its first training or, without one, until it
    `ended` by itself; nothing if it was killed before."""
    if not tried.reached:
        return  # the first start
    first = place.first_training(search.began)
    until = ended if first is None else first
    if until is not None:
        tried.restart_seconds.append(until - search.began)


class Records:
    """The lines of a file, one JSON object each; a last line that was cut off is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole, encoding="utf-8")
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]

    def add(self, record: Any) -> None:
        """Append a record."""
        content = asdict(record)
        with self._lock:
            self.lines.append(content)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(content) + "\n")


def read_tried(records: Records) -> list[Tried]:
    """The cases of a file."""
    found = []
    for line in records.lines:
        given = line["case"]
        kills = tuple(Kill(**kill) for kill in given["kills"])
        case = Case(given["seed"], Setting(**given["setting"]), kills)
        found.append(Tried(**{**line, "case": case}))
    return found


def read_uninterrupted(records: Records) -> dict[Setting, Uninterrupted]:
    """The uninterrupted searches of a file."""
    lines = [{**line, "setting": Setting(**line["setting"])} for line in records.lines]
    return {line["setting"]: Uninterrupted(**line) for line in lines}


@contextlib.contextmanager
def server_for(storages: Sequence[str]) -> Iterator[tuple[list[str], str | None]]:
    """The storages that can be used here, and the URL of a server if PostgreSQL is among them."""
    if "postgresql" not in storages:
        yield list(storages), None
        return
    with contextlib.ExitStack() as stack:
        try:
            import psycopg  # noqa: F401

            url = stack.enter_context(postgresql_server())
        except (ImportError, NotInstalledError) as missing:
            print(f"cases on PostgreSQL are left out: {missing}")
            yield [name for name in storages if name != "postgresql"], None
            return
        yield list(storages), url


def try_kills(
    seeds: Sequence[int], out: Path, *, together: int = 1, storages: Sequence[str] = STORAGES
) -> list[Tried]:
    """Run the cases of these seeds that are not recorded yet; returns them."""
    heed_signals()
    tried, baselines = Records(out / "kills.jsonl"), Records(out / "uninterrupted.jsonl")
    done = {line["case"]["seed"] for line in tried.lines}
    cases = [draw_case(seed) for seed in seeds if seed not in done]
    cases = [case for case in cases if case.setting.storage in storages]
    found: list[Tried] = []
    if not cases:
        return found
    wanted = sorted({case.setting.storage for case in cases})
    with server_for(wanted) as (available, server), starters(together) as lanes:
        cases = [case for case in cases if case.setting.storage in available]
        known = measured({case.setting for case in cases}, baselines, out, server, lanes[0])

        def run(case: Case, processes: Starter) -> None:
            setting = case.setting
            reference = replace(setting, storage="sqlite", n_jobs=1, fork=True)
            for _ in range(_TRIES):
                place = Place(out / "cases" / str(case.seed), setting, server)
                one = run_case(case, known[setting], known[reference].digests, place, processes)
                if one.reached[0]:
                    break
                # The machine is faster than when it was measured.
                known[setting].seconds = min(known[setting].seconds, one.seconds)
            place.close(keep=one.outcome != EQUAL)
            tried.add(one)
            found.append(one)
            kills = ", ".join(f"{k.name} at {k.moment * known[setting].seconds:.2f} s" for k in case.kills)
            print(f"{case.seed:5} {one.outcome:9} {setting.key}: {kills}", flush=True)

        side_by_side(cases, lanes, run)
    return found


def heed_signals() -> None:
    """Heed signals that are ignored, as SIGINT is in what a shell runs in the background: processes that are
    started would ignore them, too."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def measured(
    settings: set[Setting], records: Records, out: Path, server: str | None, processes: Starter
) -> dict[Setting, Uninterrupted]:
    """The uninterrupted searches of these settings, measured where they are not recorded."""
    known = read_uninterrupted(records)
    wanted = {replace(s, storage="sqlite", n_jobs=1, fork=True) for s in settings} | settings
    missing = sorted(wanted - known.keys(), key=lambda setting: setting.key)
    for setting in missing:
        known[setting] = uninterrupted(setting, out / "cases" / "uninterrupted", processes, server)
        records.add(known[setting])
        print(f"uninterrupted: {known[setting].seconds:.2f} s ({setting.key})", flush=True)
    return known


_Task = TypeVar("_Task")


def side_by_side(
    tasks: Sequence[_Task], lanes: Sequence[Starter], run: Callable[[_Task, Starter], None]
) -> None:
    """Run tasks, one at a time in each lane; an error, or Ctrl-C, ends all after the tasks that run."""
    waiting: queue.SimpleQueue[_Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    errors: list[BaseException] = []

    def serve(processes: Starter) -> None:
        try:
            while not errors:
                run(waiting.get_nowait(), processes)
        except queue.Empty:
            pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=serve, args=(lane,)) for lane in lanes]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt as error:
        errors.append(error)
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
