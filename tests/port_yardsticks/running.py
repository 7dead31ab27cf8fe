"""Recorded decisions of the servers, run through the port of a `serve`, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import pymysql
from pymysql.constants import CLIENT

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB
from tests.judged_port import Answered, PortRecorder, judged
from tests.logged_events import Event, are_equal, comparable
from tests.port_replicas import REPLICA
from tests.port_yardsticks.exceptions import explained
from tests.port_yardsticks.replica import RecordsReplica
from tests.servers import QUICK, mysql_program
from tests.yardsticks.records import Record, Warned, objects_script, records

FORMATS: Final = ("STATEMENT", "MIXED", "ROW")
_BINLOG: Final = "judged"
_ISOLATION: Final = {"mariadb": "tx_isolation", "mysql": "transaction_isolation"}
_ROWS_FILE: Final = "/var/lib/data/load.txt"
# Refused by every MySQL that could be a source: its transactions have GTIDs.
_GTID_REFUSALS: Final = frozenset({1785, 1786, 1787, 3748})
# Refused by the recorded MySQL alone, as its transactions had none.
_NO_GTIDS: Final = 3062
# As the recorded servers had it: it tells which random bytes are text.
_CHARACTER_SET: Final = {"mariadb": "utf8mb4", "mysql": "latin1"}
_NEEDS_PLUGIN: Final = {"blackhole": "tb", "archive": "tar", "example": "tx"}
_UNSAFE: Final = 1592
_ALIKE: Final = ("UPDATE d.tdef SET b = 'x'", "UPDATE d.tdefs SET c = '2026-11-23'")
"""What defaults give rows is made alike on source and replica."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which the port and the recorded server differ.

    Attributes:
        aspect: `error`, `warnings`, `events`, `error at end`, `events at end` or `crash`.
        expected: What was recorded.
        actual: What came of it here.
    """

    aspect: str
    expected: object
    actual: object


@dataclass(frozen=True, slots=True)
class Compared:
    """A record that was run.

    Attributes:
        record: Which.
        differences: What is not as it was recorded.
        is_impossible: The source does something else because its transactions have GTIDs.
        is_second: It differed when it was run first, as it does where a reply is late.
        on_replica: What a replica of the binlog has otherwise than the source behind it; nothing
            where nobody looked.
    """

    record: Record
    differences: tuple[Difference, ...]
    is_impossible: bool = False
    is_second: bool = False
    on_replica: tuple[str, ...] = ()

    @property
    def exception(self) -> str:
        """Why it differs, where that is meant."""
        return explained(self.record, self.differences) if self.differences else ""


class Yardsticks:
    """A source with the recording's objects, a port before it, and one binlog.

    Attributes:
        flavor: `mariadb` or `mysql`.
    """

    def __init__(self, recorder: PortRecorder, *, by_session: bool) -> None:
        """Make the objects.

        Args:
            recorder: Of a port whose source is empty.
            by_session: Whether sessions set binlog_format, as the recorded ones did; else the
                binlog is altered to the format.
        """
        self.flavor = recorder.flavor
        self._recorder = recorder
        self._by_session = by_session
        self._format = ""
        source = recorder.serve.source
        self._source = pymysql.connect(
            host=source.host,
            port=source.port,
            user="root",
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
            ssl_disabled=True,
        )
        with self._source.cursor() as cursor:
            cursor.execute("SELECT engine FROM information_schema.engines WHERE support <> 'NO'")
            engines = {str(name).lower() for (name,) in cursor.fetchall()}
        self.missing = frozenset(
            table for engine, table in _NEEDS_PLUGIN.items() if engine not in engines
        )
        files = source.directory / "files"
        self._rows_file = files / "load.txt"
        self._rows_file.write_text("801\tone\n802\ttwo\n", encoding="utf-8")
        self._rows_file.chmod(0o644)
        self._replica: RecordsReplica | None = None
        for statement in self._objects:
            self._run(statement)
        recorder.serve.execute_as_root(f"CREATE BINLOG '{_BINLOG}'")

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Have a replica of the binlog, which is compared with the source behind each record."""
        serve = self._recorder.serve
        server = PrivateServer.start(
            serve.directory.parent,
            name=f"replica-{self.flavor}",
            options=(*QUICK, "--server-id=30", *REPLICA[self.flavor], *_options(self.flavor)),
            program=serve.source.program,
        )
        try:
            with closing(RecordsReplica(server, serve, _BINLOG, self._objects)) as replica:
                self._replica = replica
                yield
        finally:
            self._replica = None
            server.kill()

    @property
    def _objects(self) -> tuple[str, ...]:
        return (*_made(self.flavor, self.missing), "CREATE DATABASE IF NOT EXISTS d2", *_ALIKE)

    @property
    def log(self) -> str:
        """What `serve` has written."""
        return self._recorder.serve.log

    def close(self) -> None:
        """End its own session."""
        self._source.close()

    def can_run(self, record: Record) -> bool:
        """Whether the source has the engines that a record needs."""
        words = set(record.sql.replace("(", " ").replace(".", " ").replace(",", " ").split())
        return not (words & self.missing)

    def compare_twice(self, record: Record) -> Compared:
        """As `compare`; what differs without a reason is run again.

        On a machine that has much else to do a group may wait in vain for what is known of it.
        """
        first = self.compare(record)
        if not first.differences or first.is_impossible or first.exception:
            return first
        second = self.compare(record)
        return second if second.differences else replace(second, is_second=True)

    def compare(self, record: Record) -> Compared:
        """Run a record; everything in which the result is not the recorded server's."""
        self._prepare(record)
        settings = list(self._settings(record))
        on_replica: tuple[str, ...] = ()
        count = len(record.before)
        statements = [*record.before, self._here(record.sql), *record.end]
        try:
            answered = list(self._recorder.run(statements, settings=settings))
            on_replica = () if self._replica is None else tuple(self._replica.differing())
        except pymysql.MySQLError as error:
            found = (Difference("crash", None, f"{type(error).__name__}: {error}"),)
            return Compared(record, found)
        finally:
            self._clean(record)
        done, at_end = answered[count], answered[count + 1 : -1]
        is_impossible = record.error == _NO_GTIDS or any(
            each.error in _GTID_REFUSALS and each.error != expected
            for each, expected in [
                (done, record.error),
                *zip(at_end, record.errors_at_end, strict=True),
                *((each, None) for each in answered[:count]),
            ]
        )
        differences = tuple(self._differences(record, done, at_end))
        return Compared(record, differences, is_impossible, on_replica=on_replica)

    def _differences(
        self, record: Record, done: Answered, at_end: Sequence[Answered]
    ) -> Iterator[Difference]:
        if done.error != record.error:
            yield Difference("error", record.error, (done.error, done.message))
        if done.reasons != record.reasons:
            yield Difference("notes", record.reasons, done.reasons)
        theirs = [self._told(warned) for warned in record.warnings]
        ours = [self._told(warned) for warned in done.warnings]
        if theirs != ours and done.reasons == record.reasons:
            yield Difference("warnings", theirs, ours)
        errors = tuple(each.error for each in at_end)
        if errors != record.errors_at_end:
            yield Difference("error at end", record.errors_at_end, errors)
        words = record.sql.lower()
        upserts = words.startswith("replace") or "on duplicate key" in words
        appended = [event for each in at_end for event in each.events[_BINLOG]]
        for aspect, recorded, events in (
            ("events", record.events, done.events[_BINLOG]),
            ("events at end", record.events_at_end, appended),
        ):
            expected = comparable(map(self._here_event, recorded), upserts=upserts)
            actual = comparable(events, upserts=upserts)
            if not are_equal(expected, actual):
                yield Difference(aspect, expected, actual)

    def _told(self, warned: Warned) -> tuple[str, int, str]:
        """A warning, without what random bytes or data make of its text."""
        return (warned.level, warned.errno, warned.text if warned.errno == _UNSAFE else "")

    def _settings(self, record: Record) -> Iterator[str]:
        settings = record.settings
        if self._by_session:
            yield f"set session binlog_format={settings['binlog_format']}"
        yield f"set session {_ISOLATION[self.flavor]}='{settings['tx_isolation']}'"
        yield f"set binlog_direct_non_transactional_updates={settings['binlog_direct']}"
        yield f"set autocommit={settings['autocommit']}"
        yield "set @uv='u'"

    def _prepare(self, record: Record) -> None:
        wanted = "MIXED" if self._by_session else str(record.settings["binlog_format"])
        if wanted != self._format:
            self._recorder.serve.execute_as_root(f"ALTER BINLOG '{_BINLOG}' FORMAT='{wanted}'")
            self._format = wanted
        if record.name == "create_db":
            is_first = record.number in _first_of_each(self.flavor)
            self._run(f"{'DROP DATABASE IF' if is_first else 'CREATE DATABASE IF NOT'} EXISTS d2")
        if record.name == "fun:setval(sq,50)":
            # The recording had gone past 50 before.
            self._run_unlogged("DO setval(d.sq,5000)")
        if record.name == "replace_select":
            # The recording's rows were no longer all alike, so that one is replaced.
            self._run_unlogged("UPDATE d.ti SET b='old' WHERE a=1")
        if record.name == "seq_nextval_do":
            # The range in the cache lasts.
            self._run_unlogged("DO nextval(d.sq)")

    def _clean(self, record: Record) -> None:
        """Let all data be as the recording began, and drop what the record made."""
        if "tnew" in record.sql:
            self._run("DROP TABLE IF EXISTS d.tnew")
        if "trz" in record.sql:
            self._run("DROP TRIGGER IF EXISTS d.trz")
        self._run_unlogged(_reset_script(self.flavor, self.missing))

    def _run_unlogged(self, statements: str) -> None:
        statements = f"SET sql_log_bin=0; {statements}; SET sql_log_bin=1"
        self._run(statements)
        if self._replica is not None:
            self._replica.run(statements)

    def _run(self, statements: str) -> None:
        with self._source.cursor() as cursor:
            cursor.execute(statements)
            while cursor.nextset():
                pass

    def _here(self, sql: str) -> str:
        return sql.replace(_ROWS_FILE, str(self._rows_file))

    def _here_event(self, event: Event) -> Event:
        return Event(event.type, self._here(event.info))


@contextmanager
def yardsticks(
    flavor: str,
    directory: Path,
    *,
    by_session: bool = False,
    plugins: Path | None = None,
) -> Iterator[Yardsticks]:
    """Start a source and a port before it.

    Args:
        flavor: `mariadb` or `mysql`; skips the test where there is no MySQL.
        directory: Where both live.
        by_session: As `Yardsticks`.
        plugins: MariaDB's, of which it gets BLACKHOLE and ARCHIVE; None goes without.
    """
    options = [*QUICK, *_options(flavor)]
    if flavor == "mysql":
        program: Any = mysql_program()
        options += MYSQL_SOURCE_OPTIONS
    else:
        program = MARIADB
        options += SOURCE_OPTIONS
        if plugins is not None:
            options += [f"--plugin-dir={plugins}", "--plugin-maturity=unknown"]
            options += [f"--plugin-load-add=ha_{name}" for name in ("blackhole", "archive")]
    with (
        PrivateServer.start(
            directory, name=f"yardsticks-{flavor}", options=options, program=program
        ) as source,
        judged(directory / f"serve-{flavor}", source) as serve,
    ):
        recorder = PortRecorder(serve, [_BINLOG])
        made = Yardsticks(recorder, by_session=by_session)
        try:
            yield made
        finally:
            made.close()
            recorder.close()


def _options(flavor: str) -> tuple[str, ...]:
    """Of the source, and of a replica that is to be like it."""
    return (
        "--log-bin-trust-function-creators=1",
        f"--character-set-server={_CHARACTER_SET[flavor]}",
    )


def sampled(flavor: str, size: int | None, seed: int) -> list[Record]:
    """Records by lot, as many of each format; all of them where `size` is None.

    They are in the order of the formats, so that the binlog is altered twice.
    """
    found = list(records(flavor))
    by_format = {
        one: [record for record in found if record.settings["binlog_format"] == one]
        for one in FORMATS
    }
    if size is not None:
        chance = Random(seed)
        by_format = {
            one: sorted(
                chance.sample(those, min(len(those), size // len(FORMATS))),
                key=lambda record: record.number,
            )
            for one, those in by_format.items()
        }
    return [record for those in by_format.values() for record in those]


def counted(compared: Iterable[Compared]) -> dict[str, Counter[str]]:
    """By format: how many records agree, differ, and cannot be on this source; and in what."""
    counts: dict[str, Counter[str]] = {one: Counter() for one in FORMATS}
    for each in compared:
        count = counts[str(each.record.settings["binlog_format"])]
        if each.is_impossible:
            count["impossible"] += 1
            continue
        count["compared"] += 1
        count["agree"] += not each.differences
        if each.exception:
            count[f"explained: {each.exception}"] += 1
        else:
            count.update({difference.aspect for difference in each.differences})
    return counts


@cache
def _statements(script: str) -> tuple[str, ...]:
    """The statements of a script for the servers' client."""
    found: list[str] = []
    delimiter, lines = ";", []
    for line in script.splitlines():
        if line.upper().startswith("DELIMITER "):
            delimiter = line.split()[1]
            continue
        lines.append(line)
        text = "\n".join(lines).strip()
        if text.endswith(delimiter):
            found.append(text.removesuffix(delimiter).strip())
            lines = []
    # The source is configured by its own options.
    return tuple(text for text in found if not text.lower().startswith("set global"))


@cache
def _made(flavor: str, missing: frozenset[str]) -> tuple[str, ...]:
    """The statements that make the recording's objects, as far as this source takes them."""
    statements = _statements(objects_script(flavor))
    tables = {text.split()[2] for text in statements if text.startswith("create table ")} - missing
    return tuple(
        text
        for text in statements
        if not text.startswith(("create table ", "insert into "))
        or text.split("(")[0].split()[2] in tables
    )


@cache
def _reset_script(flavor: str, missing: frozenset[str]) -> str:
    """One packet that puts the recording's rows into its tables again, unlogged."""
    made = _made(flavor, missing)
    # ARCHIVE deletes nothing, EXAMPLE holds nothing, MERGE is its one table.
    left_out = {"tar", "tx", "tg"}
    tables = [text.split()[2] for text in made if text.startswith("create table ")]
    inserts = [text for text in made if text.startswith("insert into ")]
    return ";".join(
        (
            "USE d; SET foreign_key_checks=0",
            *(f"DELETE FROM {table}" for table in tables if table not in left_out),
            *(text for text in inserts if text.split("(")[0].split()[2] not in left_out),
            *_ALIKE,
        )
    )


@cache
def _first_of_each(flavor: str) -> frozenset[int]:
    first: dict[str, int] = {}
    for record in records(flavor):
        first.setdefault(record.name, record.number)
    return frozenset(first.values())
