"""Grants on disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from binlane.binlogs.store.catalog import Catalog
from binlane.binlogs.store.grants import ReadGrant
from binlane.positions import Gtid, GtidPosition
from binlane.statements.sql.accounts import AccountName
from tests.old_stores import without_incidents


def position(sequence: int) -> GtidPosition:
    return GtidPosition.of([Gtid(0, 1, sequence)])


GRANT = ReadGrant(
    log_id=3, account=AccountName("tëam'`", "%"), since=position(5), granted=1_700_000_000
)


def test_they_are_there_again(tmp_path: Path) -> None:
    path = tmp_path / "catalog"
    with Catalog.open(path) as catalog:
        assert (catalog.grants.rows(), catalog.grants.known()) == ((), None)
        catalog.grants.replace([GRANT], position(7))
    with Catalog.open_read_only(path) as catalog:
        assert (catalog.grants.rows(), catalog.grants.known()) == ((GRANT,), position(7))


def test_what_is_known_never_goes_back(tmp_path: Path) -> None:
    with Catalog.open(tmp_path / "catalog") as catalog:
        catalog.grants.replace([GRANT], position(7))
        catalog.grants.save_known(position(6))
        assert catalog.grants.known() == position(7)
        catalog.grants.save_known(position(8))
        assert catalog.grants.known() == position(8)


def test_they_go_with_their_binlog(tmp_path: Path) -> None:
    with Catalog.open(tmp_path / "catalog") as catalog:
        catalog.grants.replace([GRANT], position(7))
        catalog.remove(GRANT.log_id)
        assert catalog.grants.rows() == ()


def test_a_store_from_before_gets_their_table(tmp_path: Path) -> None:
    path = tmp_path / "catalog"
    Catalog.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "DROP TABLE binlog_grants; DROP TABLE accounts_known; PRAGMA user_version = 5;"
        )
        without_incidents(connection)
    connection.close()
    with Catalog.open(path) as catalog:
        catalog.grants.replace([GRANT], position(7))
        assert catalog.grants.rows() == (GRANT,)
