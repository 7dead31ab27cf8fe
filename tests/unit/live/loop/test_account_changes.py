"""What account statements of a log make of grants."""

from __future__ import annotations

import pytest

from binlane.binlogs.store.grants import ReadGrant
from binlane.live.loop.account_changes import Dropped, Renamed, followed, logged_accounts
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import Flavor
from binlane.positions import Gtid, GtidPosition
from binlane.statements.sql.accounts import AccountName

A, B, C = (AccountName(name) for name in "abc")


def logged(text: str, flavor: Flavor = Flavor.MARIADB, *, errno: int = 0) -> object:
    event = QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=errno,
        status_vars=b"",
        database=b"",
        query=text.encode(),
    )
    found = logged_accounts(event, flavor)
    return None if found is None else (found.changes if found.is_understood else "unknown")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP USER a", (Dropped(A),)),
        ("DROP USER IF EXISTS 'a'@'%', `b`", (Dropped(A), Dropped(B))),
        ("RENAME USER a TO b, b TO 'c'@'LOCALHOST'", None),
        ("DROP ROLE a", (Dropped(AccountName("a", "")),)),
        ("CREATE OR REPLACE USER a IDENTIFIED BY 'x'", (Dropped(A),)),
        ("CREATE USER a@''", (Dropped(A),)),
        ("CREATE USER IF NOT EXISTS a", ()),
        ("ALTER USER a IDENTIFIED BY 'x'", ()),
        ("GRANT r TO a", ()),
        ("SET PASSWORD FOR 'a'@'%'='*29AE85CB9D63185E5AEC011DCF097838C52CBB52'", ()),
        ("DROP USER ''@'%'", (Dropped(AccountName("", "%")),)),
        ("DROP USER a b", "unknown"),
    ],
)
def test_what_a_statement_does_to_accounts(text: str, expected: object) -> None:
    if expected is None:
        expected = Renamed(A, B), Renamed(B, AccountName("c", "localhost"))
    assert logged(text) == expected


def test_what_is_about_something_else() -> None:
    assert logged("DROP TABLE a") is None
    assert logged("CREATE DATABASE user") is None


def test_what_failed_in_part() -> None:
    assert logged("RENAME USER a TO b, x TO y", errno=1396) == (
        Dropped(A),
        Dropped(AccountName("x")),
    )
    assert logged("CREATE USER a, b", errno=1396) == ()
    assert logged("DROP USER a, b", errno=1396) == (Dropped(A), Dropped(B))


def test_roles_of_mysql_are_accounts() -> None:
    assert logged("DROP ROLE a", Flavor.MYSQL) == (Dropped(A),)
    assert logged("DROP USER a@''", Flavor.MYSQL) == (Dropped(AccountName("a", "")),)


def granted(account: AccountName, sequence: int, log_id: int = 1) -> ReadGrant:
    since = GtidPosition.of([Gtid(0, 1, sequence)])
    return ReadGrant(log_id=log_id, account=account, since=since, granted=0)


def test_grants_go_along_with_their_accounts() -> None:
    before = (granted(A, 5), granted(A, 5, 2), granted(C, 5))
    after = followed(before, [Renamed(A, B)], Gtid(0, 1, 6))
    assert [(each.log_id, each.account) for each in after] == [(1, B), (2, B), (1, C)]
    assert followed(after, [Dropped(B)], Gtid(0, 1, 7)) == (granted(C, 5),)


def test_what_was_granted_behind_a_statement_is_of_the_account_since() -> None:
    late = granted(A, 6)
    assert followed([late], [Dropped(A)], Gtid(0, 1, 6)) == (late,)
    assert followed([late], [Renamed(A, B)], Gtid(0, 1, 6)) == (late,)


def test_a_new_name_has_nothing_of_who_had_it_before() -> None:
    after = followed([granted(A, 5), granted(B, 5, 2)], [Renamed(A, B)], Gtid(0, 1, 6))
    assert [(each.log_id, each.account) for each in after] == [(1, B)]


def test_names_may_change_places() -> None:
    changes = [Renamed(A, C), Renamed(B, A), Renamed(C, B)]
    after = followed([granted(A, 5), granted(B, 5, 2)], changes, Gtid(0, 1, 6))
    assert {(each.log_id, each.account) for each in after} == {(1, B), (2, A)}
