"""Effects of the source's own account statements on the grants on binlogs.

Grants are of accounts by name. A statement that renames an account takes its grants along, one that
drops it, or makes it anew, ends them. Such statements are read from the source's log alone, wherever
they were executed: the log says which succeeded, and in which order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from binlane.binlogs.routing.logged_ddl import logged_ddl
from binlane.binlogs.store.grants import ReadGrant
from binlane.binlogs.store.store import Store
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.status_vars import invoker
from binlane.log.codec.types import Flavor
from binlane.log.grouping.raw import Item, LargeGroup
from binlane.positions import AnyGtid, Position
from binlane.statements.sql.accounts import AccountName
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tree.account_statements import AccountStatement, NamedAccount

logger = logging.getLogger(__name__)

PUBLIC: Final = AccountName("PUBLIC", "")
"""MariaDB's name for everybody."""
_DEPARTED_MAX: Final = 4096
"""Names that are kept of accounts whose sessions may go on without them."""
_DROPPING: Final = frozenset(("DROP USER", "DROP ROLE"))
_MAKING: Final = frozenset(("CREATE USER", "CREATE ROLE"))


@dataclass(frozen=True, slots=True)
class Dropped:
    """A name of no account any more, or of a new one."""

    account: AccountName


@dataclass(frozen=True, slots=True)
class Renamed:
    """An account has another name."""

    old: AccountName
    new: AccountName


@dataclass(frozen=True, slots=True)
class LoggedAccounts:
    """An account statement of a log.

    Attributes:
        changes: The changes of accounts, in order; none where only the accounts' rights change.
        is_understood: True if that is all of it.
        doubtful: Accounts of a statement that failed in part: not known are their names.
    """

    changes: tuple[Dropped | Renamed, ...] = ()
    is_understood: bool = True
    doubtful: tuple[AccountName, ...] = ()


def account_name(
    account: NamedAccount, flavor: Flavor, *, current: AccountName | None = None
) -> AccountName:
    """An account as the source keeps it: hosts in small letters, without one from everywhere.

    Args:
        account: The account as a statement writes it, and no role of MariaDB.
        flavor: The flavor of the source.
        current: The account that CURRENT_USER stands for.
    """
    if account.is_current and current is not None:
        return current
    host = "%" if account.host is None else account.host.lower()
    if not host and flavor is Flavor.MARIADB:
        host = "%"
    # Servers leave blanks at the end out.
    return AccountName(account.user.rstrip(" "), host)


def logged_accounts(event: QueryEvent, flavor: Flavor) -> LoggedAccounts | None:
    """Return a logged statement's effect on accounts; None if it is about something else.

    Source: MariaDB 10.11 sql/sql_acl.cc; MySQL 9.7 sql/auth/sql_user.cc; measured: of several
    accounts MariaDB does what it can, and logs the statement with its error; MySQL does all or none.
    """
    logged = logged_statement(event)
    dialect = Dialect(flavor=flavor.value).with_mode(logged.sql_mode, logged.charset)
    facts = read(logged.text, database="", dialect=dialect)
    if facts.effects.kind is not StatementKind.ACCOUNT:
        return None
    tree = facts.tree
    if facts.effects.stopped_at is not None or not isinstance(tree, AccountStatement):
        return LoggedAccounts(is_understood=False)
    names = [_logged_name(each, tree, event, flavor) for each in tree.accounts]
    if tree.verb in _DROPPING:
        return LoggedAccounts(tuple(map(Dropped, names)))
    if tree.verb in _MAKING:
        # Accounts that were there before stay where IF NOT EXISTS says so, and where the statement
        # fails.
        stays = "IF NOT EXISTS" in tree.options or bool(event.error_code)
        is_new = "OR REPLACE" in tree.options or not stays
        return LoggedAccounts(tuple(map(Dropped, names)) if is_new else ())
    if tree.verb != "RENAME USER":
        return LoggedAccounts()
    pairs = list(zip(names[::2], names[1::2], strict=True))
    if not event.error_code:
        return LoggedAccounts(tuple(Renamed(old, new) for old, new in pairs))
    # The log does not tell which of them were renamed: nobody may read by the name of another.
    doubtful = tuple(old for old, _ in pairs)
    return LoggedAccounts(tuple(map(Dropped, doubtful)), doubtful=doubtful)


def _logged_name(
    account: NamedAccount, tree: AccountStatement, event: QueryEvent, flavor: Flavor
) -> AccountName:
    is_role = tree.verb.endswith("ROLE") and flavor is Flavor.MARIADB and not account.is_current
    if is_role and account.host is None:
        return AccountName(account.user, "")
    told = invoker(event) if account.is_current else None
    current = None if told is None else AccountName(*told)
    return account_name(account, flavor, current=current)


def followed(
    grants: Iterable[ReadGrant], changes: Sequence[Dropped | Renamed], gtid: AnyGtid
) -> tuple[ReadGrant, ...]:
    """Grants behind an account statement.

    Args:
        grants: The grants before the account statement.
        changes: The statement's changes of accounts, in order.
        gtid: The statement's GTID: what was granted behind it is of the account that has the name
            since.
    """
    kept = tuple(grants)
    for change in changes:
        kept = tuple(_changed(kept, change, gtid))
    return kept


def _changed(
    grants: Sequence[ReadGrant], change: Dropped | Renamed, gtid: AnyGtid
) -> Iterator[ReadGrant]:
    gone = change.account if isinstance(change, Dropped) else change.new
    later = {(each.log_id, each.account) for each in grants if each.since.covers(gtid)}
    for each in grants:
        if each.since.covers(gtid):
            yield each
        elif isinstance(change, Renamed) and each.account == change.old:
            if (each.log_id, change.new) not in later:
                yield replace(each, account=change.new)
        elif each.account != gone:
            # No account had the new name: what was granted to it is of one that is gone.
            yield each


class AccountWatch:
    """Keeps grants with their accounts; used by the routing thread alone.

    Args:
        store: The store that has the grants.
        changed: Called when what some account may read may be another than before.

    Attributes:
        known: Everything up to here was looked at; None before there were grants.
        version: Grows with each account statement that was followed.
        departed: Names that accounts had, and the last GTID of the source from which on they had them
            no more, oldest first; replaced, never changed.
    """

    def __init__(self, store: Store, changed: Callable[[], None]) -> None:
        self._store = store
        self._changed = changed
        self.known = store.accounts_known if store.grants else None
        self.version = 0
        self.departed: Mapping[AccountName, AnyGtid] = MappingProxyType({})

    @property
    def is_watching(self) -> bool:
        """True if there are grants."""
        return bool(self._store.grants)

    def connected(self, position: Position) -> None:
        """Take in the position where the source's log begins to come."""
        if not self.is_watching:
            return
        if self.known is not None and not self.known.includes(position):
            logger.error(
                "grants on binlogs: account statements of the source between %s and %s were not "
                "seen (SHOW GRANTS ON BINLOG lists all grants: revoke those of accounts that were "
                "dropped or renamed)",
                *(self.known, position),
            )
            self.known = self.known.union(position)

    def noted(self, item: Item, after: Position | None) -> None:
        """Follow the account statements in what the source gave next, before anybody has it.

        Raises:
            CodecError: If one is damaged.
            StoreError: If what follows cannot be saved; it is to be given again.
        """
        if not self.is_watching or after is None:
            return
        if not isinstance(item, LargeGroup):
            for event, gtid in logged_ddl(item):
                if gtid is not None and not (self.known and self.known.covers(gtid)):
                    self._follow(event, gtid, Flavor(after.flavor))
        if self.known is None:
            self.known = after
        elif not self.known.includes(after):
            self.known = self.known.union(after)

    def begin(self, position: Position) -> None:
        """Be told that the first grant is made, and what was looked at before counts for nothing."""
        self.known = position

    def renewed(self) -> None:
        """Take in that grants have changed."""
        self.version += 1
        self._changed()

    def _follow(self, event: QueryEvent, gtid: AnyGtid, flavor: Flavor) -> None:
        logged = logged_accounts(event, flavor)
        if logged is None:
            return
        if not logged.is_understood:
            logger.error(
                "grants on binlogs: the source's account statement %s is not understood; grants of "
                "accounts that it renames or drops stay with their names",
                gtid,
                extra={"gtid": str(gtid)},
            )
        before = self._store.grants
        for name in logged.doubtful:
            if any(each.account == name for each in before):
                logger.error(
                    "grants on binlogs: %s loses what it was granted: the source's RENAME USER %s "
                    "failed in part (GRANT READ ON BINLOG again)",
                    *(name.shown, gtid),
                    extra={"user": name.shown, "gtid": str(gtid)},
                )
        after = followed(before, logged.changes, gtid)
        assert self.known is not None, "there are grants"
        if after != before:
            self._store.set_grants(after, self.known.advance(gtid))
            logger.info(
                "grants on binlogs: changed by the source's account statement %s",
                gtid,
                extra={"gtid": str(gtid)},
            )
        self.known = self.known.advance(gtid)
        self.version += 1
        self._depart(logged.changes, gtid)
        self._changed()

    def _depart(self, changes: Sequence[Dropped | Renamed], gtid: AnyGtid) -> None:
        """Note that sessions of accounts go on that are not there, or have another name."""
        gone = [each.account if isinstance(each, Dropped) else each.old for each in changes]
        departed = {name: at for name, at in self.departed.items() if name not in gone}
        departed |= dict.fromkeys(gone, gtid)
        latest = list(departed.items())[-_DEPARTED_MAX:]
        self.departed = MappingProxyType(dict(latest))
