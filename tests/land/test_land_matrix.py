"""Random workloads on both servers, landed in every format with kills, beside the servers' SELECT.

`BINLANE_LAND_SEEDS` says how many seeds of each server the long form has, 6 by default. What a
machine with more servers and hours does is `python -m tests.land_matrix`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from binlane.live.provision.server_programs import MARIADB
from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.range_work import FormatName, Mode
from tests.land_comparison import Comparison, Verdict
from tests.land_matrix import Matrix, Runner
from tests.land_recording import Source
from tests.land_workload import Said
from tests.landed import delta_rows
from tests.servers import mysql_program

SEEDS_ALL = int(os.environ.get("BINLANE_LAND_SEEDS", "6"))
SHARE_GIVEN_UP_MAX = 0.2
SourceOf = Callable[[str], Source]


@pytest.fixture(scope="module")
def source_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SourceOf]:
    """A server of each kind, whose data workloads may drop."""
    sources: dict[str, Source] = {}

    def source(server: str) -> Source:
        if server not in sources:
            program = MARIADB if server == "mariadb" else mysql_program()
            sources[server] = Source(tmp_path_factory.mktemp(server), program)
        return sources[server]

    yield source
    for each in sources.values():
        each.server.kill()


def landed(
    source: Source,
    directory: Path,
    seeds: Sequence[int],
    *,
    formats: Sequence[FormatName],
    kills: Sequence[int],
    statements: int,
) -> Verdict:
    matrix = Matrix(source, directory, Runner(), "embedded")
    for seed in seeds:
        matrix.seed(seed, count=statements, formats=formats, kills=kills)
    total = Verdict()
    for verdict in matrix.verdicts.values():
        total.update(verdict)
    return total


@pytest.mark.parametrize(
    ("server", "seed", "table_format"),
    [
        ("mariadb", 2, FormatName.PARQUET),
        ("mysql", 3, FormatName.DELTA),
        ("mariadb", 4, FormatName.ICEBERG),
    ],
)
def test_landed_tables_are_those_of_the_server(
    server: str, seed: int, table_format: FormatName, source_of: SourceOf, tmp_path: Path
) -> None:
    verdict = landed(
        source_of(server), tmp_path, [seed], formats=[table_format], kills=[2], statements=80
    )
    assert verdict.wrong == []
    assert verdict.counts["current equal"] > 5


def test_what_differs_is_found(source_of: SourceOf, tmp_path: Path) -> None:
    source, log, lake = source_of("mariadb"), tmp_path / "log", tmp_path / "lake"
    log.mkdir()
    made = [
        "CREATE DATABASE shop",
        "CREATE TABLE `shop`.`a` (k INT PRIMARY KEY, v VARCHAR(9))",
        "INSERT INTO shop.a VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    ]
    recording = source.record(log, [[Said(0, statement) for statement in made]])
    report = land(str(log), str(lake), LandingSettings(modes=frozenset(Mode)))

    def wrong() -> list[str]:
        comparison = Comparison(recording, log, lake, FormatName.DELTA, report)
        return comparison.compare(recording.moments[-1]).wrong

    assert wrong() == []
    current, changes = lake / "current/shop/a", lake / "changes/shop/a"
    DeltaTable(str(current)).update(new_values={"v": "x"}, predicate="k = 2")
    write_deltalake(str(changes), pa.table(delta_rows(changes).slice(0, 1)), mode="append")
    DeltaTable(str(lake / "history/shop/a")).delete("k = 3")
    kinds = [each.split(":")[0] for each in wrong()]
    assert kinds == ["current shop.a", "history shop.a", "replay shop.a", "changes shop.a"]
    DeltaTable(str(current)).delete()
    assert wrong()[0].startswith("current shop.a: 3 rows are missing, 0 too many")


@pytest.mark.slow
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_many_landed_tables_are_those_of_the_server(
    server: str, source_of: SourceOf, tmp_path: Path
) -> None:
    seeds = range(1, SEEDS_ALL + 1)
    verdict = landed(
        source_of(server), tmp_path, seeds, formats=[*FormatName], kills=[0, 3], statements=200
    )
    assert verdict.wrong == []
    equal, given_up = verdict.counts["current equal"], verdict.counts["current given up"]
    assert equal > 30 * SEEDS_ALL
    assert given_up <= SHARE_GIVEN_UP_MAX * (equal + given_up), verdict.reasons
