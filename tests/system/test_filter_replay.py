"""What a filter leaves of a log, run on an empty server, gives exactly the tables that it names."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from binlane.binlogs.filters.events import EventFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.terms import parse_terms
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from tests.filtered import Flavor, arguments, filters, work
from tests.rename_workload import DATABASES
from tests.replay import binlane, checksums
from tests.servers import execute

_STATEMENTS: Final = 120


@pytest.fixture(scope="module", params=["mariadb", "mariadb118", "mysql"])
def flavor(request: pytest.FixtureRequest, server_directory: Path) -> Iterator[Flavor]:
    started = Flavor.start(str(request.param), server_directory)
    try:
        yield started
    finally:
        started.server.kill()


def wanted(paths: Sequence[str], given: dict[str, list[str]], tables: set[TableName]) -> set[str]:
    """Those tables that there are at the end which the filter follows there."""
    found = EventFilter(FilterState(parse_terms(given)), lambda _: None)
    for path in paths:
        events = walk([Path(path).read_bytes()], file=path)
        for event in expanded_all(events, file=path):
            list(found.feed(event, file=path))
    return {str(table) for table in tables if found.state.includes(table)}


def by_cat(paths: Sequence[str], options: Sequence[str], _: Path) -> bytes:
    return binlane("cat", "--quiet", *options, *paths)


def by_route(paths: Sequence[str], options: Sequence[str], out: Path) -> bytes:
    binlane("route", "--quiet", *options, "--out", str(out), *paths)
    made = sorted(str(path) for path in (out / "binlog").iterdir() if path.suffix != ".index")
    return binlane("cat", "--quiet", *made)


def check(flavor: Flavor, seed: int, directory: Path, ways: Sequence[Callable[..., bytes]]) -> None:
    """Compare what every filter leaves with the source's own tables."""
    flavor.reset()
    chance = random.Random(seed)
    workload = flavor.workload(chance)
    work(flavor.server, workload.session(_STATEMENTS))
    tables = checksums(flavor.server)
    assert set(tables) == {str(table) for table in workload.there}
    paths = flavor.logs(directory / "log")
    for number, given in enumerate(filters(chance)):
        expected = {name: tables[name] for name in wanted(paths, given, workload.there)}
        text = ways[number % len(ways)](paths, arguments(given), directory / f"out{number}")
        flavor.reset()
        execute(
            flavor.server,
            "SET sql_log_bin = 0",
            *(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4" for name in DATABASES),
        )
        errors = [error for error in flavor.run(text) if "ERROR 1007" not in error]
        assert errors == [], (seed, given)
        assert checksums(flavor.server) == expected, (seed, given)


@pytest.mark.rule("003:rename-follow")
@pytest.mark.parametrize("seed", [1])
def test_replay_gives_the_tables_that_are_followed(
    seed: int, flavor: Flavor, tmp_path: Path
) -> None:
    check(flavor, seed, tmp_path, (by_cat, by_route))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_long_replay(seed: int, flavor: Flavor, tmp_path: Path) -> None:
    check(flavor, seed, tmp_path, (by_route, by_cat))
