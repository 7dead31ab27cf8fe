"""Commands at damaged files: `python -m tests.fuzz.commands SECONDS [SEED [COMMAND...]]`.

Each run takes a recorded file, or a file of a routed store, changes it at random and gives it to a
command in a process of its own, which has a bound of memory and time. A traceback, a signal, a run
that does not end and an exit code without a word are told with their seed, which repeats them. The
exit status is not 0 if there were any.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.cli import main as run_command
from binlane.log.codec.event import checksum
from tests.fixture_sets import fixture_names, fixture_set
from tests.routed_files import routed, written

_MEMORY_BYTES: Final = 4 << 30
_SECONDS_MOST: Final = 120
_HEADER: Final = 19
_LARGE_BYTES: Final = 200_000
_INTERESTING: Final = (0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFE, 0xFF)
_SCHEMA: Final = (
    b"CREATE DATABASE d; USE d; CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9) DEFAULT 'x');\n"
    b"CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1;\n"
)


class Place(NamedTuple):
    """Where a run works.

    Attributes:
        directory: Its own.
        chance: Its own.
    """

    directory: Path
    chance: random.Random


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The same bytes but for some; the checksum of a changed event is right again, mostly."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        at = chance.randrange(len(changed) or 1)
        match chance.randrange(6):
            case 0:
                del changed[at : at + chance.randrange(1, 64)]
            case 1:
                changed[at:at] = chance.randbytes(chance.randrange(1, 64))
            case 2:
                del changed[at:]
            case 3:
                start = chance.randrange(len(changed) or 1)
                changed[at:at] = changed[start : start + 200]
            case _:
                if changed:
                    changed[at] = chance.choice((*_INTERESTING, changed[at] ^ 1 << at % 8))
    if chance.random() < 0.7:
        _seal(changed)
    return bytes(changed)


def _seal(data: bytearray) -> None:
    at = 4
    while at + _HEADER + 4 <= len(data):
        length = int.from_bytes(data[at + 9 : at + 13], "little")
        end = at + length - 4
        if length < _HEADER + 4 or end + 4 > len(data):
            return
        data[end : end + 4] = checksum(bytes(data[at:end])).to_bytes(4, "little")
        at += length


def _log(place: Place, *, suffix: str = "") -> Path:
    """A damaged file of a log."""
    names = [name for name in fixture_names() if name.endswith(suffix) or suffix in name]
    name = place.chance.choice(names)
    binlogs = [data for _, data in fixture_set(name).binlogs if len(data) < _LARGE_BYTES]
    path = place.directory / "binlog.000001"
    path.write_bytes(damaged(place.chance.choice(binlogs or [b"\xfebin"]), place.chance))
    return path


def _cat(place: Place) -> list[str]:
    options = (["-vv"], ["--format=json", "-v"], ["--summary"], ["--flashback"], ["-v", "--force"])
    return ["cat", str(_log(place)), *place.chance.choice(options)]


def _explain(place: Place) -> list[str]:
    return ["explain", str(_log(place)), str(place.chance.choice((4, 256, 300, 1000)))]


def _verify(place: Place) -> list[str]:
    return ["verify", str(_log(place))]


def _route(place: Place) -> list[str]:
    definitions = place.directory / "defs.sql"
    definitions.write_text("CREATE BINLOG 'a'; CREATE BINLOG 'b' LOG(shop.t);\n")
    out = place.directory / "out"
    return ["route", str(_log(place)), "--binlogs", str(definitions), "--out", str(out)]


def _land(place: Place) -> list[str]:
    mode = place.chance.choice(("changes", "current", "history"))
    into = place.directory / "lake"
    return ["land", str(_log(place)), "--into", str(into), "--format", "parquet", "--mode", mode]


def _check(place: Place) -> list[str]:
    chance, directory = place.chance, place.directory
    texts = [
        text for name in fixture_names() if (text := fixture_set(name).files.get("script.sql"))
    ]
    script, schema = directory / "s.sql", directory / "schema.sql"
    script.write_bytes(damaged(chance.choice(texts)[:20_000], chance))
    schema.write_bytes(damaged(_SCHEMA, chance))
    server = chance.choice(("mariadb", "mysql"))
    return ["check", "--server", server, "--schema", str(schema), str(script)]


def _keys(place: Place) -> list[str]:
    chance = place.chance
    sets = [fixture_set(name) for name in ("md1011_encrypted", "my97_encrypted")]
    chosen = chance.choice(sets)
    files = [data for name, data in chosen.files.items() if "key" in name] or [b"1;" + b"0" * 64]
    keys = place.directory / "keys"
    keys.write_bytes(damaged(chance.choice(files), chance))
    path = place.directory / "binlog.000001"
    data = chosen.binlogs[0][1]
    path.write_bytes(data if chance.random() < 0.5 else damaged(data, chance))
    return [chance.choice(("cat", "verify")), str(path), "--encryption-keys", str(keys)]


def _store(place: Place) -> list[str]:
    """A routed store of which any file is damaged: indexes, records, what was noted of groups."""
    chance, directory = place.chance, place.directory
    paths = written(chance.choice(("md1011_txn", "my97_txn")), directory / "in")
    out = directory / "out"
    routed(paths, out, "LOG ALL", "LOG(shop.t)")
    files = sorted(path for path in out.rglob("*") if path.is_file())
    path = chance.choice(files)
    path.write_bytes(damaged(path.read_bytes(), chance))
    definitions = directory / "defs.sql"
    definitions.write_text("CREATE BINLOG 'b1' LOG ALL; CREATE BINLOG 'b2' LOG(shop.t);\n")
    if chance.random() < 0.5:
        return ["verify", str(out)]
    return ["route", *paths, "--binlogs", str(definitions), "--out", str(out)]


RUNS: Final[Mapping[str, Callable[[Place], list[str]]]] = MappingProxyType(
    {
        "cat": _cat,
        "check": _check,
        "explain": _explain,
        "keys": _keys,
        "land": _land,
        "route": _route,
        "store": _store,
        "verify": _verify,
    }
)


def trouble(name: str, seed: int) -> str | None:
    """What is wrong with a run; None if nothing is.

    Args:
        name: Of `RUNS`.
        seed: Of what is damaged, and how.
    """
    directory = Path(tempfile.mkdtemp(prefix="binlane-fuzz-"))
    try:
        arguments = RUNS[name](Place(directory, random.Random(seed)))
        said = directory / "said"
        status, seconds = _run(arguments, said)
        text = said.read_text("utf-8", "replace")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if status < 0:
        return f"ended by signal {-status} after {seconds:.0f} s: {' '.join(arguments)}"
    if "fault of binlane" in text or "Traceback" in text or "not enough memory" in text:
        return f"{' '.join(arguments)}: {text[-600:]}"
    if status and not text.strip():
        return f"status {status} without a word: {' '.join(arguments)}"
    return None


def _run(arguments: list[str], said: Path) -> tuple[int, float]:
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
            signal.alarm(_SECONDS_MOST)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            for number in (1, 2):
                os.dup2(out, number)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
            code = run_command(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what it began and left
    return os.waitstatus_to_exitcode(status), time.monotonic() - begun


def main() -> int:
    """Run until the time is over; the number of troubles is told at the end."""
    seconds, seed, *names = sys.argv[1:] + ["60", "0"][len(sys.argv) - 1 :]
    chosen = names or sorted(RUNS)
    until, number = time.monotonic() + float(seconds), int(seed)
    runs: Counter[str] = Counter()
    troubles = 0
    while time.monotonic() < until:
        name = chosen[number % len(chosen)]
        found = trouble(name, number)
        runs[name] += 1
        number += 1
        if found is not None:
            troubles += 1
            print(f"{name}, seed {number - 1}: {found}", flush=True)
    print(f"{runs.total()} runs ({dict(sorted(runs.items()))}), {troubles} troubles")
    return min(troubles, 1)


if __name__ == "__main__":
    sys.exit(main())
