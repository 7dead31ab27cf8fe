"""GRANT and REVOKE READ ON BINLOG, and SHOW GRANTS ON BINLOG."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from binlane.binlogs.store.grants import ReadGrant
from binlane.client.questions import ALL_ROWS
from binlane.errors import HINT_ERRNO, BinlaneError, Diagnostic, StatementError
from binlane.live.answers.access import Access
from binlane.live.gateway.answers import Answer, OkAnswer, RowsAnswer
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.loop.account_changes import PUBLIC, account_name
from binlane.live.loop.binlogs import Binlogs
from binlane.log.codec.format import flavor_of
from binlane.log.codec.types import Flavor
from binlane.names import quote
from binlane.positions import Position
from binlane.statements.scope.statements import GrantRead, RevokeRead, ShowReadGrants
from binlane.statements.sql.accounts import AccountName
from binlane.statements.sql.tree.account_statements import NamedAccount

COLUMN: Final = "Grants on binlogs"
_NO_ACCOUNT: Final = {Flavor.MARIADB: 1133, Flavor.MYSQL: 1410}
_NO_ACCOUNT_TEXTS: Final = {
    Flavor.MARIADB: "Can't find any matching row in the user table",
    Flavor.MYSQL: "You are not allowed to create a user with GRANT",
}
# In digits, so that no character set changes a name on its way.
_ACCOUNTS: Final = (
    "SELECT HEX(CONVERT(User USING utf8mb4)), HEX(CONVERT(Host USING utf8mb4)) FROM mysql.user"
    " WHERE HEX(CONVERT(User USING utf8mb4)) IN ({})"
)

Rows = Sequence[Sequence[str | None]]
AskSource = Callable[[str], Awaitable[Rows]]
"""Asks the source with binlane's own account; raises BinlaneError."""
AskPosition = Callable[[HandlerSession], Awaitable[Position]]


class GrantStatements:
    """Executes GRANT and REVOKE on binlogs, and SHOW GRANTS.

    Args:
        binlogs: The binlogs that are granted.
        access: Knows the accounts of sessions.
        position: Asks what the source has done.
        ask: Asks the source what the session may not see; None: nobody does.
    """

    def __init__(
        self,
        binlogs: Binlogs,
        access: Access,
        position: AskPosition,
        ask: AskSource | None = None,
    ) -> None:
        self._binlogs = binlogs
        self._access = access
        self._position = position
        self._ask = ask

    async def grant(self, session: HandlerSession, statement: GrantRead) -> Answer:
        """Let accounts read binlogs, from now on."""
        await session.require(SourcePrivilege.DEFINE)
        for name in statement.names:
            self._binlogs.get(name)
        # Before accounts are looked for: whatever happens to them from here on will be followed.
        done = await self._position(session)
        accounts, notes = await self._there(session, statement.accounts)
        is_new = await self._binlogs.changes.grant(statement.names, accounts, done=done)
        if not is_new:
            notes = [*notes, "it was granted already"]
        return _noting(notes)

    async def revoke(self, session: HandlerSession, statement: RevokeRead) -> Answer:
        """Let accounts read binlogs no more; dumps end behind the event group that they are at."""
        await session.require(SourcePrivilege.DEFINE)
        granted = {each.account for each in self._binlogs.grants}
        accounts = [await self._named(session, each, granted) for each in statement.accounts]
        done = await self._binlogs.changes.revoke(
            statement.names, accounts, if_exists=statement.if_exists
        )
        return _noting([] if done else ["nothing of it was granted"])

    async def show(self, session: HandlerSession, statement: ShowReadGrants) -> Answer:
        """List grants as the statements that make them: all to who may define, to others their own."""
        names = await self._access.seen(session)
        if statement.name is not None:
            names = (await self._access.find(session, statement.name, SourcePrivilege.MONITOR),)
        shown = await visible_grants(self._access, session, self._binlogs.grants)
        if statement.account is not None:
            account = await self._named(
                session, statement.account, {each.account for each in shown}
            )
            shown = tuple(each for each in shown if each.account == account)
        by_id = {each.log_id: each.name for each in self._binlogs.definitions}
        rows = sorted(
            (by_id[each.log_id], each.account) for each in shown if by_id.get(each.log_id) in names
        )
        return RowsAnswer(
            (COLUMN,),
            [(f"GRANT READ ON BINLOG '{name}' TO {written(account)}",) for name, account in rows],
        )

    async def _named(
        self, session: HandlerSession, account: NamedAccount, granted: set[AccountName]
    ) -> AccountName:
        """The account that a statement means: of a name without host the role, if that has a grant."""
        flavor = flavor_of(session.server_version)
        current = None
        if account.is_current:
            current = (await self._access.holder(session)).account
        elif flavor is Flavor.MARIADB and account.host is None:
            role = PUBLIC if _is_public(account) else AccountName(account.user, "")
            if role in granted:
                return role
        return account_name(account, flavor, current=current)

    async def _there(
        self, session: HandlerSession, accounts: Sequence[NamedAccount]
    ) -> tuple[list[AccountName], list[str]]:
        """Accounts and roles as the source has them; and what could not be found out.

        Raises:
            StatementError: If the source has no such account.
        """
        flavor = flavor_of(session.server_version)
        known = await self._known(session, [each.user for each in accounts])
        found = []
        for account in accounts:
            if flavor is Flavor.MARIADB and _is_public(account):
                found.append(PUBLIC)
                continue
            name = await self._named(session, account, known or set())
            if known is not None and name not in known and not account.is_current:
                raise StatementError(
                    f"{_NO_ACCOUNT_TEXTS[flavor]}: {name.shown}",
                    errno=_NO_ACCOUNT[flavor],
                    sqlstate="42000" if flavor is Flavor.MYSQL else "28000",
                    hint="CREATE USER first; accounts are the source's",
                )
            found.append(name)
        notes = []
        if known is None:
            notes.append("note: whether the source has such accounts is not to be seen")
        return list(dict.fromkeys(found)), notes

    async def _known(
        self, session: HandlerSession, users: Sequence[str]
    ) -> set[AccountName] | None:
        """The source's accounts of some names; None if nobody is allowed to see them."""
        digits = ", ".join(f"'{user.encode(errors='replace').hex().upper()}'" for user in users)
        statement = _ACCOUNTS.format(digits) + ALL_ROWS
        rows: Rows
        try:
            rows = (await session.query_source(statement)).texts()
        except StatementError:
            try:
                if self._ask is None:
                    return None
                rows = await self._ask(statement)
            except BinlaneError:
                return None
        return {AccountName(*(bytes.fromhex(cell or "").decode() for cell in row)) for row in rows}


async def visible_grants(
    access: Access, session: HandlerSession, grants: Sequence[ReadGrant]
) -> Sequence[ReadGrant]:
    """The grants that a session's account may see: its own and its roles', or all if it may define.

    Raises:
        StatementError: As `Access.holder`.
    """
    if not grants or await access.is_administrator(session):
        return grants
    holder = await access.holder(session)
    return tuple(each for each in grants if each.account in holder.names)


def _noting(notes: Sequence[str]) -> OkAnswer:
    """The answer to a statement that is done, with what there is to be said."""
    told = tuple(Diagnostic("Note", HINT_ERRNO, note) for note in notes)
    return OkAnswer(info="; ".join(notes), diagnostics=told)


def written(account: AccountName) -> str:
    """An account as a statement names it."""
    if account.is_role:
        return quote(account.user)
    return f"{quote(account.user)}@{quote(account.host)}"


def _is_public(account: NamedAccount) -> bool:
    return account.host is None and account.user.upper() == PUBLIC.user
