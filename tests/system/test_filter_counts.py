"""What a filter leaves out of tables that it names is counted, the same by every tool.

Of each table that the rules name: row images in the log = those that come out + those that are noted,
as `scan`, `cat`, `route`, `land` and Spark's source have them; and what comes out is, run by a server
or landed, what the source had.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from binlane import api
from binlane.binlogs.filters.events import EventFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.losses import Losses
from binlane.binlogs.filters.terms import parse_terms
from binlane.errors import ConfigError
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.tables.columnar.table_schema import table_of
from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.tables.table_directories import Directories
from binlane.tables.spark.change_log import change_log_schema
from binlane.tables.spark.source import BinlogReader
from binlane.tables.spark.source_options import SourceOptions
from tests.filtered import Flavor, Given, arguments, filters, work
from tests.landed import current_rows
from tests.rename_workload import DATABASES
from tests.replay import binlane, checksums
from tests.servers import execute

_STATEMENTS: Final = 100
_FEW_STATEMENTS: Final = 50
_UNMATCHED: Final = "the log has nothing of what the filter names"
_PRINTED: Final = re.compile(
    rb"^### (INSERT INTO|UPDATE|DELETE FROM) `((?:[^`]|``)+)`\.`((?:[^`]|``)+)`", re.MULTILINE
)
Images = Counter[TableName]


@pytest.fixture(scope="module", params=["mariadb", "mariadb118", "mysql"])
def flavor(request: pytest.FixtureRequest, server_directory: Path) -> Iterator[Flavor]:
    started = Flavor.start(str(request.param), server_directory)
    try:
        yield started
    finally:
        started.server.kill()


@dataclass(frozen=True, slots=True)
class Expected:
    """What the reference says of a filter at the end of a log.

    Attributes:
        state: Of the filter.
        losses: What it left out.
        notes: What it said at its end.
    """

    state: FilterState
    losses: Losses
    notes: list[str]

    @classmethod
    def of(cls, paths: Sequence[str], given: Given, rename: str) -> Expected:
        found = EventFilter(FilterState(parse_terms(given, rename=rename)), lambda _: None)
        for path in paths:
            data, name = Path(path).read_bytes(), Path(path).name
            for event in expanded_all(walk([data], file=name), file=name):
                list(found.feed(event, file=name))
        return cls(found.state, found.state.left_out, found.state.summary())


def scanned(paths: Sequence[str], notes: list[str], **given: Any) -> Images:
    """The row images of each table; what the scan warned of is added to the notes."""
    found = Images()
    with warnings.catch_warnings(record=True, action="always") as warned:
        for batch in api.scan(paths, **given):
            found[table_of(batch.schema)] += batch.num_rows
    notes += [str(each.message) for each in warned]
    return found


def command(*given: str) -> tuple[bytes, list[str]]:
    """What a command prints, and says."""
    done = subprocess.run(
        (sys.executable, "-m", "binlane", *given), capture_output=True, check=False
    )
    said = done.stderr.decode().splitlines()
    assert done.returncode in {0, 1}, said
    assert (done.returncode == 1) == any(_UNMATCHED in line for line in said), said
    return done.stdout, [re.sub(r"^(binlane|note): ", "", line) for line in said]


def printed(text: bytes) -> Images:
    """The row images of each table in what `cat -v` prints."""
    found = Images()
    for kind, *name in _PRINTED.findall(text):
        table = TableName(*(part.decode().replace("``", "`") for part in name))
        found[table] += 2 if kind == b"UPDATE" else 1
    return found


def read_in_spark(paths: Sequence[str], given: Given, rename: str) -> None:
    """Read a log by Spark's source, which logs what is left out."""
    options = SourceOptions.parse(
        {
            "path": str(Path(paths[0]).parent),
            "maxPartitionBytes": "4000",
            "rename": rename,
            **{_camel(option): ",".join(names) for option, names in given.items()},
        }
    )
    reader = BinlogReader(options, from_arrow_schema(change_log_schema(options)))
    for partition in reader.partitions():
        list(reader.read(partition))


def _camel(option: str) -> str:
    return re.sub("_(.)", lambda found: found[1].upper(), option)


class Check:
    """Compares what the tools say of one log and filter.

    Args:
        flavor: The server.
        paths: The log.
        given: The filter.
        rename: Likewise.
        directory: For what is made.
    """

    def __init__(
        self, flavor: Flavor, paths: Sequence[str], given: Given, rename: str, directory: Path
    ) -> None:
        self._flavor = flavor
        self._paths = paths
        self._given = given
        self._rename = rename
        self._directory = directory
        self._options = [*arguments(given), f"--rename={rename}"]
        self.expected = Expected.of(paths, given, rename)

    def scan(self) -> None:
        """Row images in = out + noted."""
        notes: list[str] = []
        out = scanned(self._paths, notes, rename=self._rename, **self._given)
        losses, rules = self.expected.losses, self.expected.state.terms.rules
        assert notes[len(notes) - len(self.expected.notes) :] == self.expected.notes
        every = scanned(self._paths, [])
        for table in {*every, *out, *losses.images}:
            if rules.includes(table):
                assert every[table] == out[table] + losses.images[table], table
        self.out = out

    def cat(self) -> bytes:
        """What it prints is what the scan gives, and it says the same."""
        text, said = command("cat", "-v", *self._options, *self._paths)
        assert said[len(said) - len(self.expected.notes) :] == self.expected.notes
        assert printed(text) == self.out
        return text

    def route(self) -> list[str]:
        """The files that it makes hold what the scan gives, and it says the same."""
        out = self._directory / "routed"
        _, said = command("route", *self._options, "--out", str(out), *self._paths)
        assert [line for line in said if line in self.expected.notes] == self.expected.notes
        made = sorted(str(path) for path in (out / "binlog").iterdir() if path.suffix != ".index")
        assert scanned(made, []) == self.out
        return made

    def spark(self, log: pytest.LogCaptureFixture) -> None:
        """The counts of all ranges together are the same."""
        log.clear()
        read_in_spark(self._paths, self._given, self._rename)
        told, losses = "\n".join(log.messages), self.expected.losses
        for what, counts in (("statement", losses.statements), ("row image", losses.images)):
            assert sum(map(int, re.findall(rf"(\d+) {what}s?\b", told))) == counts.total()
        assert (_UNMATCHED in told) == self.expected.state.is_unmatched

    def land(self, rows: dict[str, Counter[tuple[Any, ...]]], there: set[TableName]) -> None:
        """It says the same; tables that are current are the source's."""
        lake = self._directory / "lake"
        settings: dict[str, Any] = {"batch_bytes": 9000, "task_bytes": 3000, **self._given}
        if self.expected.state.is_unmatched:
            with pytest.raises(ConfigError, match=_UNMATCHED):
                api.land(list(self._paths), lake, **settings)
            return
        report = api.land(list(self._paths), lake, **settings)
        texts = self.expected.losses.texts
        assert list(report.notes[len(report.notes) - len(texts) :]) == texts
        landed = Images(
            {TableName(*name.split(".", 1)): each.rows for name, each in report.tables.items()}
        )
        assert +landed == self.out
        tables = Directories(str(lake), Mode.CURRENT, "_delta_log")
        found = {table.plain: table for table in tables.names()}
        for table in filter(self.expected.state.includes, there):
            told = report.tables.get(table.plain)
            if told is None or not told.is_current:
                # A table without rows may not be landed.
                assert not rows[str(table)] or (told is not None and told.why_not), table
                continue
            assert current_rows(Path(tables.uri(found[table.plain]))) == rows[str(table)], table

    def replay(self, text: bytes, there: dict[str, object]) -> None:
        """A text, run on an empty server, makes the tables that the filter follows."""
        flavor = self._flavor
        flavor.reset()
        execute(
            flavor.server,
            "SET sql_log_bin = 0",
            *(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4" for name in DATABASES),
        )
        errors = [error for error in flavor.run(text) if "ERROR 1007" not in error]
        assert errors == []
        assert checksums(flavor.server) == there


def selected(flavor: Flavor, tables: set[TableName]) -> dict[str, Counter[tuple[Any, ...]]]:
    """All rows of tables."""
    return {
        str(table): Counter(execute(flavor.server, f"SELECT * FROM {table}")) for table in tables
    }


def check(
    flavor: Flavor, seed: int, directory: Path, log: pytest.LogCaptureFixture, count: int
) -> None:
    """Compare all tools on a random session's log, or on a copy of it with tables info."""
    flavor.reset()
    chance = random.Random(seed)
    mixes = seed % 2 == 0
    workload = flavor.workload(chance, mixes=mixes)
    work(flavor.server, workload.session(count))
    tables = checksums(flavor.server)
    rows = selected(flavor, workload.there)
    paths = flavor.logs(directory / "log")
    if seed % 4 >= 2:
        definitions = directory / "all.sql"
        definitions.write_text("CREATE BINLOG 'binlog';")
        told = directory / "told"
        binlane(
            *("route", "--quiet", "--with-tables-info", f"--binlogs={definitions}"),
            *("--out", str(told), *paths),
        )
        made = (told / "binlog").iterdir()
        paths = sorted(str(path) for path in made if path.suffix != ".index")
    for number, given in enumerate(filters(chance)):
        rename = chance.choice(("follow", "follow", "name"))
        case = Check(flavor, paths, given, rename, directory / str(number))
        try:
            case.scan()
            text = case.cat()
            made_paths = case.route()
            case.spark(log)
            if rename == "follow":  # or a table by one of its names is part of one
                case.land(rows, workload.there)
            if rename == "follow" and not mixes:
                includes = case.expected.state.includes
                wanted = {name: tables[name] for name in map(str, filter(includes, workload.there))}
                case.replay(text, wanted)
                case.replay(flavor.printed(made_paths), wanted)
        except AssertionError as error:
            raise AssertionError(f"{seed} {given} --rename={rename}: {error}") from error


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_all_tools_count_the_same(
    seed: int, flavor: Flavor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    check(flavor, seed, tmp_path, caplog, _FEW_STATEMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_long_count(
    seed: int, flavor: Flavor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    check(flavor, seed, tmp_path, caplog, _STATEMENTS)
