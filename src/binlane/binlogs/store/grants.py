"""Grants of READ on binlogs, on disk, beside the definitions.

An account is the source's, by its name there. Its grants follow the statements of the source's log
that rename and drop accounts; how far that log was read for them is kept here too, so that none of
them is applied twice, or left out over a restart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from binlane.binlogs.store.database import SqliteDatabase
from binlane.positions import Position, parse_position
from binlane.statements.sql.accounts import AccountName


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGrant:
    """READ on a binlog.

    Attributes:
        log_id: Id of the granted binlog.
        account: User or role of the source.
        since: The source's position at the grant: account statements up to there were of an account
            that had the name before.
        granted: Time of the grant, seconds since 1970.
    """

    log_id: int
    account: AccountName
    since: Position
    granted: int


class GrantTable:
    """The rows of grants.

    Args:
        database: The SQLite database that holds them.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def rows(self) -> tuple[ReadGrant, ...]:
        """All grants, by binlog and account."""
        rows = self._database.rows(
            "SELECT log_id, user, host, since, flavor, granted FROM binlog_grants"
            " ORDER BY log_id, user, host"
        )
        return tuple(
            ReadGrant(
                log_id=log_id,
                account=AccountName(user, host),
                since=parse_position(since, flavor),
                granted=granted,
            )
            for log_id, user, host, since, flavor, granted in rows
        )

    def known(self) -> Position | None:
        """Up to where account statements of the source were applied; None if none ever had to be."""
        rows = self._database.rows("SELECT gtids, flavor FROM accounts_known")
        return parse_position(*rows[0]) if rows else None

    def replace(self, grants: Iterable[ReadGrant], known: Position | None) -> None:
        """Have these grants and no others, and account statements applied up to `known`."""
        rows = [
            (each.log_id, *each.account, str(each.since), each.since.flavor, each.granted)
            for each in grants
        ]
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM binlog_grants")
            connection.executemany("INSERT INTO binlog_grants VALUES (?, ?, ?, ?, ?, ?)", rows)
            connection.execute("DELETE FROM accounts_known")
            if known is not None:
                values = str(known), known.flavor
                connection.execute("INSERT INTO accounts_known VALUES (?, ?)", values)

    def save_known(self, known: Position) -> None:
        """Note that account statements up to a position were applied; one that is behind is left."""
        with self._database.transaction() as connection:
            rows = connection.execute("SELECT gtids, flavor FROM accounts_known").fetchall()
            before: Position | None = parse_position(*rows[0]) if rows else None
            if before is not None and before.includes(known):
                return
            connection.execute("DELETE FROM accounts_known")
            values = str(known), known.flavor
            connection.execute("INSERT INTO accounts_known VALUES (?, ?)", values)
