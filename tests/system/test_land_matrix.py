"""Random workloads on both servers, landed in every format with kills, beside the servers' SELECT.

`BINLANE_LAND_SEEDS` says how many seeds of each server the long form has, 6 by default. What a
machine with more servers and hours does is `python -m tests.land_matrix`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from binlane.landing.work import Format
from binlane.service.server_programs import MARIADB, ServerProgram
from tests.land_comparison import Verdict
from tests.land_matrix import Matrix, Runner
from tests.land_recording import Source
from tests.servers import mysql_program

SEEDS_ALL = int(os.environ.get("BINLANE_LAND_SEEDS", "6"))
SHARE_GIVEN_UP_MAX = 0.2


def program_of(server: str) -> ServerProgram:
    return MARIADB if server == "mariadb" else mysql_program()


def landed(
    directory: Path, server: str, seeds: Sequence[int], kills: Sequence[int], statements: int
) -> Verdict:
    source = Source(directory / "server", program_of(server))
    try:
        matrix = Matrix(source, directory, Runner(), "embedded")
        for seed in seeds:
            formats = list(Format) if len(seeds) > 1 else [[*Format][seed % len(Format)]]
            matrix.seed(seed, count=statements, formats=formats, kills=kills)
    finally:
        source.server.kill()
    total = Verdict()
    for verdict in matrix.verdicts.values():
        total.update(verdict)
    return total


@pytest.mark.parametrize(("server", "seed"), [("mariadb", 2), ("mysql", 3), ("mariadb", 4)])
def test_landed_tables_are_those_of_the_server(server: str, seed: int, tmp_path: Path) -> None:
    verdict = landed(tmp_path, server, [seed], [2], 80)
    assert verdict.wrong == []
    assert verdict.counts["current equal"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_many_landed_tables_are_those_of_the_server(server: str, tmp_path: Path) -> None:
    verdict = landed(tmp_path, server, range(1, SEEDS_ALL + 1), [0, 3], 200)
    assert verdict.wrong == []
    equal, given_up = verdict.counts["current equal"], verdict.counts["current given up"]
    assert equal > 30 * SEEDS_ALL
    assert given_up <= SHARE_GIVEN_UP_MAX * (equal + given_up), verdict.reasons
