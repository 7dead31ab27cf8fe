"""What the storage engines of both servers can."""

from __future__ import annotations

import pytest

from binlane.errors import NotLoggableError
from binlane.statements.policy.engines import (
    BOTH,
    NEITHER,
    Formats,
    engine_traits,
)
from binlane.statements.policy.server import Server

MARIADB = Server.parse("mariadb")
MYSQL = Server.parse("mysql")


@pytest.mark.rule("002:row-capable")
@pytest.mark.rule("002:statement-capable")
@pytest.mark.parametrize("server", [MARIADB, MYSQL], ids=lambda server: server.flavor)
@pytest.mark.parametrize(
    "engine, formats",
    [
        pytest.param(name, formats, id=name, marks=pytest.mark.rule(f"002:engine-{rule}"))
        for name, rule, formats in [
            ("ARCHIVE", "archive", BOTH),
            ("blackhole", "blackhole", BOTH),  # by rows too since MySQL 5.5 and MariaDB 5.5
            ("CSV", "csv", BOTH),
            ("EXAMPLE", "example", Formats.STATEMENT),  # the other way round in the seed
            ("FEDERATED", "federated", BOTH),
            ("MEMORY", "memory", BOTH),
            ("HEAP", "memory", BOTH),
            ("MyISAM", "myisam", BOTH),
            ("MERGE", "merge", BOTH),
            ("MRG_MyISAM", "merge", BOTH),
        ]
    ],
)
def test_engines(engine: str, formats: Formats, server: Server) -> None:
    assert engine_traits(engine, server.flavor).formats is formats


@pytest.mark.rule("002:engine-ndbcluster")
def test_ndb_is_logged_by_rows() -> None:
    assert engine_traits("ndbcluster", "mysql").formats is Formats.ROW


@pytest.mark.rule("002:set-capable")
def test_a_set_of_tables_can_what_all_of_them_can() -> None:
    assert BOTH & Formats.ROW == Formats.ROW
    assert Formats.ROW & Formats.STATEMENT == NEITHER


@pytest.mark.parametrize("server", [MARIADB, MYSQL], ids=lambda server: server.flavor)
def test_an_unknown_engine_is_not_guessed(server: Server) -> None:
    with pytest.raises(NotLoggableError, match="storage engine Falcon") as raised:
        engine_traits("Falcon", server.flavor)
    assert "BLACKHOLE" in raised.value.hint
