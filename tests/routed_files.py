"""Running `route` over the files of a fixture set."""

from __future__ import annotations

from pathlib import Path

from binlane.binlogs.route.job import route_files
from binlane.binlogs.route.route_request import RouteReport, RouteRequest
from binlane.binlogs.route.schedule import Schedule
from binlane.binlogs.store.disk import Disk
from binlane.binlogs.store.settings import StoreSettings
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import CreateBinlog, create
from tests.fixture_sets import fixture_set


def definitions(*clauses: str) -> tuple[Definition, ...]:
    """Binlogs `b1`, `b2` … with these clauses."""
    made = []
    for number, each in enumerate(clauses, 1):
        statement = parse_binlog_statement(f"CREATE BINLOG 'b{number}' {each}")
        assert isinstance(statement, CreateBinlog)
        made.append(create(statement, number))
    return tuple(made)


def written(name: str, directory: Path) -> tuple[str, ...]:
    """The files of a set, written into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for file, data in fixture_set(name).binlogs:
        path = directory / file
        path.write_bytes(data)
        paths.append(str(path))
    return tuple(paths)


def request(paths: tuple[str, ...], out: Path, *clauses: str, **fields: object) -> RouteRequest:
    """A request with these clauses for its binlogs."""
    return RouteRequest(paths=paths, schedule=Schedule(definitions(*clauses)), out=out, **fields)  # type: ignore[arg-type]  # the dataclass checks them


def routed(
    paths: tuple[str, ...],
    out: Path,
    *clauses: str,
    disk: Disk | None = None,
    max_binlog_size: int = 1 << 30,
    **fields: object,
) -> RouteReport:
    """Route files."""
    settings = StoreSettings(max_binlog_size_bytes=max_binlog_size)
    asked = request(paths, out, *clauses, settings=settings, **fields)
    return route_files(asked, disk=disk)


def outputs(out: Path) -> dict[str, bytes]:
    """All binlog files and indexes that were made."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.parent != out
    }
