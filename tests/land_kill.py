"""A landing that follows a busy source and is killed again and again.

What dies, and when, is drawn: the driver at any moment, when a task has just written a file that no
commit has named yet, or when one table has just got its commit and the next has not; or a process
that does works. At the end the tables must be what the source's SELECT and its log say.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import binlane
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.log.codec.columns import decode_rows
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.xa import finished_by, prepared_in
from binlane.names import TableName
from binlane.tables.columnar.prepared_transactions import is_commit
from binlane.tables.landing.verification import Lake, verify_lake
from tests.landed import current_rows, delta_rows
from tests.live_load import Load
from tests.servers import ServerFactory, execute

KINDS = ("driver", "driver", "worker", "file", "file", "commit")
_POLL_S = 0.01
_PATIENCE_S = 30.0
_END_S = 600.0
_OPS = {(False, True): ("insert",), (True, False): ("delete",)}
_UPDATE = ("update_before", "update_after")
PLACE = ("_file", "_pos", "_row", "_op")
"""Columns of a change table that tell one row image from all others."""


class LoggedImage(NamedTuple):
    """A row image of a log, its place, and what it holds by the names of columns."""

    table: TableName
    file: str
    position: int
    row: int
    op: str
    values: Mapping[str, Any]


class Story:
    """A source under load, and its landing.

    Args:
        servers: Start the source.
        directory: Gets the log and the lake.
        seed: Of what the source does, and of who dies when.
        pause_s: Longest wait of the source's sessions between two transactions.
        arguments: Of `binlane land`, beside source, target and how to follow.
        kinds: What may die, and when.

    Attributes:
        kills: By what died and when.
        load: What the source does.
    """

    def __init__(
        self,
        servers: ServerFactory,
        directory: Path,
        *,
        seed: int,
        pause_s: float,
        xa: bool = True,
        arguments: tuple[str, ...] = (),
        kinds: tuple[str, ...] = KINDS,
    ) -> None:
        self.log, self.lake = directory / "log", directory / "lake"
        self.log.mkdir()
        self._said = directory / "land.log"
        self._arguments = arguments
        self._kinds = kinds
        self._chance = random.Random(seed)
        # Small files, so that batches have several ranges, which go to several processes.
        self.source = servers.start(
            "source",
            (*SOURCE_OPTIONS, f"--log-bin={self.log}/binlog", "--max-binlog-size=40K"),
        )
        self.load = Load(self.source, writers=3, seed=seed, pause_s=pause_s, xa=xa)
        self.load.prepare()
        self.kills: Counter[str] = Counter()
        self._driver: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.load.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.load.__exit__(kind, error, traceback)
        self._end()

    def kill(self) -> None:
        """Let it run a while, and then let something die."""
        driver = self._running()
        how = self._chance.choice(self._kinds)
        if how in {"file", "commit"}:
            pattern = "**/*.parquet" if how == "file" else "**/_delta_log/*.json"
            before = set(self.lake.glob(pattern))
            end_s = time.monotonic() + _PATIENCE_S
            while time.monotonic() < end_s and driver.poll() is None:
                if set(self.lake.glob(pattern)) - before:
                    break
                time.sleep(_POLL_S)
        else:
            time.sleep(self._chance.uniform(0, 3))
        victims = [driver.pid]
        if how == "worker":
            victims = self._workers(driver.pid)[:1]
            if not victims:
                return
        for victim in victims:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                self.kills[how] += 1
        if how != "worker":
            code = driver.wait()
            assert code == -signal.SIGKILL, self._said.read_text()[-5000:]
            self._driver = None

    def finish(self) -> None:
        """Land all that there is; to be called when the source rests."""
        self._end()
        done = self._start()
        code = done.wait(_END_S)
        assert code == 0, self._said.read_text()[-5000:]

    def check(self) -> None:
        """See that the tables are what they must be."""
        tables = execute(
            self.source,
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_schema IN ('shop', 'crm') AND table_type = 'BASE TABLE'",
        )
        assert tables
        landed = {path.relative_to(self.lake / "current") for path in self._tables("current")}
        assert landed == {Path(database, table) for database, table in tables}
        for database, table in tables:
            rows = execute(self.source, f"SELECT * FROM {database}.{table}")
            found = current_rows(self.lake / "current" / database / table)
            assert found == Counter(rows), f"{database}.{table}"
        files = sorted(Path(log_directory(self.source)).glob("binlog.0*"))
        landed_images, images = self._changes(), Counter(map(_with_note, logged_images(files)))
        assert not landed_images - images
        assert not images - landed_images
        lake = Lake(into=str(self.lake), sources=[str(self.log)])
        assert list(verify_lake(lake, has_values=True)) == []

    def _changes(self) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for path in self._tables("changes"):
            rows = delta_rows(path)
            columns = [rows[name].to_pylist() for name in (*PLACE, "id", "note")]
            name = f"{path.parent.name}.{path.name}"
            found.update((name, *row) for row in zip(*columns, strict=True))
        return found

    def _tables(self, kind: str) -> list[Path]:
        return [path.parent for path in self.lake.glob(f"{kind}/*/*/_delta_log")]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._driver is not None and self._driver.poll() is not None:
            raise AssertionError(self._said.read_text()[-5000:])
        if self._driver is None:
            self._driver = self._start("--follow", "--trigger", "100ms")
        return self._driver

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.land_driver", "land", str(self.log)]
        command += ["--into", str(self.lake), "--batch-bytes", "128K", *self._arguments]
        with self._said.open("ab") as said:
            return subprocess.Popen(
                [*command, *arguments], stdout=said, stderr=said, start_new_session=True
            )

    def _end(self) -> None:
        if self._driver is not None:
            self._driver.kill()
            self._driver.wait()
            self._driver = None

    def _workers(self, driver: int) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                if int(path.read_text().rpartition(")")[2].split()[1]) == driver:
                    found.append(int(path.parent.name))
        self._chance.shuffle(found)
        return found


def logged_images(files: Sequence[Path]) -> Iterator[LoggedImage]:
    """Each row image of binlog files, in log order, by the reference decoder.

    Those of XA transactions are there if they were committed; those of transactions that were rolled
    back in part are not, since nobody can tell which of them hold.
    """
    format_, flavor = None, None
    prepared: dict[str, list[LoggedImage]] = {}
    for group in binlane.read(list(map(str, files))):
        for event in group.events:
            if isinstance(event.body, FormatDescriptionEvent):
                format_, flavor = event.body.format, event.body.format.flavor
        if group.is_control or not group.is_complete:
            continue
        assert format_ is not None
        assert flavor is not None
        queries = [event.body.query for event in group.events if isinstance(event.body, QueryEvent)]
        if any(query.startswith(b"ROLLBACK TO") for query in queries):
            continue
        images = list(_images(group, format_, flavor))
        xid = prepared_in(group.events[-1], format_)
        if xid is not None:
            prepared[xid] = images
            continue
        yield from images
        for event in group.events:
            finished = finished_by(event)
            if finished is not None:
                rows = prepared.pop(finished, [])
                yield from _at(group.file, event, rows if is_commit(event) else [])


def _at(file: str, event: Event, images: list[LoggedImage]) -> Iterator[LoggedImage]:
    """Rows of an XA transaction stand where it was committed, numbered through."""
    number = -1
    for image in images:
        number += image.op != "update_after"
        yield image._replace(file=file, position=event.position, row=number)


def _images(group: EventGroup, format_: Format, flavor: Flavor) -> Iterator[LoggedImage]:
    for event, body, table_map in rows_with_tables(group.events, file=group.file, format_=format_):
        columns = table_columns(table_map, flavor=flavor)
        table = TableName(table_map.database, table_map.table)
        names = [column.name or f"@{column.index + 1}" for column in columns]
        for number, (before, after) in enumerate(decode_rows(body, columns)):
            images = [image for image in (before, after) if image is not None]
            ops = _OPS.get((before is not None, after is not None), _UPDATE)
            for op, image in zip(ops, images, strict=True):
                values = dict(zip(names, image, strict=True))
                yield LoggedImage(table, group.file, event.position, number, op, values)


def log_directory(source: PrivateServer) -> str:
    """Where a source has its log."""
    ((name,),) = execute(source, "SELECT @@log_bin_basename")
    return str(Path(name).parent)


def _with_note(image: LoggedImage) -> tuple[Any, ...]:
    """What `Story` compares of an image."""
    values = (_plain(image.values[name]) for name in ("id", "note"))
    return (image.table.plain, *image[1:5], *values)


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
