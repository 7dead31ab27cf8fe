"""Accounts' right to read binlogs.

An account of the source that was granted READ on binlogs reads these and sees no others. Any other
account is let in by its privileges on the source: REPLICATION SLAVE opens all, unless grants alone
are to count. Whoever may define binlogs sees all.

The account is what the source says: CURRENT_USER() of the session, with its active roles. What it may
is asked once, and again when the client has had the source do something, or grants have changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from binlane.client.questions import ALL_ROWS
from binlane.errors import StatementError
from binlane.live.gateway.handler import HandlerSession, SessionAge
from binlane.live.gateway.source_privileges import (
    ACCESS_DENIED_ERRNO,
    SourcePrivilege,
    denied,
    global_privileges,
    is_held,
)
from binlane.live.loop.account_changes import PUBLIC
from binlane.live.loop.binlogs import Binlogs
from binlane.log.codec.format import flavor_of
from binlane.log.codec.types import Flavor
from binlane.positions import Position, parse_position
from binlane.statements.scope.definition import Definition, UnknownBinlogError, unknown_binlog
from binlane.statements.sql.accounts import AccountName

_T = TypeVar("_T")

FOLLOWED_TIMEOUT_S: Final = 10.0
"""Longest wait of a session for the source's account statements to be read up to its question."""

DUMP_TIMEOUT_S: Final = 600.0
"""Longest such wait of a replica that wants heartbeats, and gets them."""
NOT_IN_TIME: Final = 1205
"""ER_LOCK_WAIT_TIMEOUT, at which clients try again."""

_GONE: Final = 1045
_POLL_FIRST_S: Final = 0.002
_POLL_LONGEST_S: Final = 0.05
_BY_GRANT: Final = frozenset(
    (
        SourcePrivilege.READ,
        SourcePrivilege.MONITOR,
        SourcePrivilege.EVENTS,
        SourcePrivilege.REPLICAS,
    )
)
"""Privileges that READ on a binlog gives, for that binlog."""
_BESIDE: Final = "READ on a binlog, or "

# In digits: a client may have set any character set for results.
_WHO: Final = MappingProxyType(
    {
        Flavor.MARIADB: "SELECT HEX(CONVERT(CURRENT_USER() USING utf8mb4)),"
        " HEX(CONVERT(CURRENT_ROLE() USING utf8mb4)), @@GLOBAL.gtid_binlog_pos LIMIT 1",
        Flavor.MYSQL: "SELECT HEX(CONVERT(CURRENT_USER() USING utf8mb4)),"
        " NULLIF(HEX(CONVERT(CURRENT_ROLE() USING utf8mb4)), '4E4F4E45'), @@GLOBAL.gtid_executed"
        " LIMIT 1",
    }
)
_ROLES: Final = MappingProxyType(
    {
        Flavor.MARIADB: "SELECT HEX(CONVERT(GRANTEE USING utf8mb4)), '',"
        " HEX(CONVERT(ROLE_NAME USING utf8mb4)), '' FROM information_schema.APPLICABLE_ROLES",
        Flavor.MYSQL: "SELECT HEX(CONVERT(GRANTEE USING utf8mb4)),"
        " HEX(CONVERT(GRANTEE_HOST USING utf8mb4)), HEX(CONVERT(ROLE_NAME USING utf8mb4)),"
        " HEX(CONVERT(ROLE_HOST USING utf8mb4)) FROM information_schema.APPLICABLE_ROLES",
    }
)
_ENABLED: Final = (
    "SELECT HEX(CONVERT(ROLE_NAME USING utf8mb4)), HEX(CONVERT(ROLE_HOST USING utf8mb4)),"
    " IS_MANDATORY FROM information_schema.ENABLED_ROLES"
)


class BinlogAccess(Enum):
    """The rules by which an account may read binlogs."""

    PRIVILEGES = "privileges"
    GRANTED = "granted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A session's account and its rights.

    Attributes:
        account: The name by which the source knows the account.
        names: The account, its active roles and those that these were granted.
        privileges: The account's privileges on `*.*` of the source.
        log_ids: The ids of the binlogs on which the account was granted READ.
    """

    account: AccountName
    names: frozenset[AccountName]
    privileges: frozenset[str]
    log_ids: frozenset[int]

    @property
    def may_define(self) -> bool:
        """True if the account may define binlogs, and so see all."""
        return is_held(SourcePrivilege.DEFINE, self.privileges)


def allowed(
    holder: Holder,
    privilege: SourcePrivilege,
    definitions: Iterable[Definition],
    rule: BinlogAccess,
) -> tuple[str, ...] | None:
    """Names of the binlogs for which an account has a privilege; None for no such privilege.

    Args:
        holder: The account and what it may.
        privilege: The privilege that the account needs.
        definitions: All binlogs' definitions, sorted by name.
        rule: The rule by which accounts may read.
    """
    has_it = is_held(privilege, holder.privileges)
    if has_it and (holder.may_define or (rule is BinlogAccess.PRIVILEGES and not holder.log_ids)):
        return tuple(each.name for each in definitions)
    if holder.log_ids and (has_it or privilege in _BY_GRANT):
        return tuple(each.name for each in definitions if each.log_id in holder.log_ids)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The source's answer about a session.

    Attributes:
        age: The session's age when the source was asked.
        version: The version of access when the source was asked.
        since: The source's position when its login was first looked at: whose account was dropped
            or renamed behind that is gone.
        done: The source's position when it gave this answer.
        account: The name by which the source knows the session's account.
        role: The role that is active; None without one.
        privileges: The account's privileges on `*.*`.
    """

    age: SessionAge
    version: int
    since: Position
    done: Position
    account: AccountName
    role: str | None
    privileges: frozenset[str]


class Access:
    """Decides what sessions see.

    Args:
        binlogs: The binlogs, and the grants on them.
        rule: The rule by which accounts may read.
    """

    def __init__(self, binlogs: Binlogs, rule: BinlogAccess = BinlogAccess.PRIVILEGES) -> None:
        self._binlogs = binlogs
        self._rule = rule
        self._asked: WeakKeyDictionary[HandlerSession, _Asked] = WeakKeyDictionary()
        self._holders: WeakKeyDictionary[HandlerSession, tuple[_Asked, Holder]] = (
            WeakKeyDictionary()
        )

    def use(self, rule: BinlogAccess) -> None:
        """Decide by another rule from now on."""
        self._rule = rule

    @property
    def is_in_use(self) -> bool:
        """True if anything beside the source's privileges counts."""
        return self._rule is BinlogAccess.GRANTED or bool(self._binlogs.grants)

    async def names(
        self,
        session: HandlerSession,
        privilege: SourcePrivilege,
        *,
        timeout_s: float = FOLLOWED_TIMEOUT_S,
    ) -> tuple[str, ...]:
        """Names of the binlogs for which a session's account has a privilege, sorted.

        Args:
            session: The session of the account.
            privilege: The privilege that the account needs.
            timeout_s: The longest wait until the source's account statements are read, in seconds.

        Raises:
            StatementError: Error 1227 if it has it for none, 1045 if its account is gone, 1205 if
                it is not known in time.
        """
        if not self.is_in_use:
            await session.require(privilege)
            return self._binlogs.names
        if await self.is_administrator(session, privilege):
            return self._binlogs.names
        holder = await self.holder(session, timeout_s=timeout_s)
        found = allowed(holder, privilege, self._binlogs.definitions, self._rule)
        if found is None:
            raise self._denied(privilege)
        return found

    async def is_administrator(
        self, session: HandlerSession, privilege: SourcePrivilege = SourcePrivilege.DEFINE
    ) -> bool:
        """True if privileges alone open all binlogs to a session's account, whatever it was granted.

        It is told at once, however far the source's account statements are read.

        Args:
            session: The session of the account.
            privilege: The privilege that the account needs beside that of defining binlogs.

        Raises:
            StatementError: If its account is gone.
        """
        privileges = (await self._ask(session)).privileges
        return is_held(SourcePrivilege.DEFINE, privileges) and is_held(privilege, privileges)

    async def seen(self, session: HandlerSession) -> tuple[str, ...]:
        """Names of the binlogs that a session's account may see, sorted; nothing if it may see none.

        Raises:
            StatementError: As `names`, but for 1227.
        """
        if not self.is_in_use or await self.is_administrator(session):
            return self._binlogs.names
        holder = await self.holder(session)
        return allowed(holder, SourcePrivilege.MONITOR, self._binlogs.definitions, self._rule) or ()

    async def told(self, session: HandlerSession) -> tuple[str, ...]:
        """Names of the binlogs of which a session's account may be told what is in their files, sorted.

        It is who may list them, and who may read them; nothing for others.

        Raises:
            StatementError: As `names`, but for 1227.
        """
        for privilege in (SourcePrivilege.MONITOR, SourcePrivilege.READ):
            try:
                return await self.names(session, privilege)
            except StatementError as error:
                if error.errno != ACCESS_DENIED_ERRNO:
                    raise
        return ()

    async def chosen(
        self, session: HandlerSession, name: str | None, privilege: SourcePrivilege
    ) -> Sequence[str]:
        """One binlog by its name, or all, of those for which an account has a privilege.

        Raises:
            StatementError: As `find`.
        """
        if name is None:
            return await self.names(session, privilege)
        return (await self.find(session, name, privilege),)

    async def listing(self, session: HandlerSession, answer: Awaitable[_T]) -> _T:
        """An answer whose error of an unknown name lists no binlog that the account may not see.

        A binlog may be dropped between looking for it as one that the account sees and using it.

        Raises:
            StatementError: As the answer does.
        """
        try:
            return await answer
        except UnknownBinlogError as error:
            raise unknown_binlog(error.binlog, await self.listed(session)) from None

    async def find(self, session: HandlerSession, name: str, privilege: SourcePrivilege) -> str:
        """The name of a binlog, if the session's account has a privilege for it.

        Raises:
            UnknownBinlogError: If there is none of this name that it may see.
            StatementError: As `names`.
        """
        names = await self.names(session, privilege)
        if name not in names:
            raise unknown_binlog(name, names)
        return name

    async def listed(self, session: HandlerSession) -> tuple[str, ...] | None:
        """The names that an error may list to a session's account; None if it may not see any listed.

        Raises:
            StatementError: As `names`, but for 1227.
        """
        try:
            return await self.names(session, SourcePrivilege.MONITOR)
        except StatementError as error:
            if error.errno != ACCESS_DENIED_ERRNO:
                raise
            return None

    async def sees_all(self, session: HandlerSession) -> bool:
        """True if there is no binlog that a session's account may not see.

        Raises:
            StatementError: As `seen`.
        """
        return await self.seen(session) == self._binlogs.names

    async def told_names(self, session: HandlerSession) -> tuple[str, ...] | None:
        """The names that a session's account may be told; None for all.

        Raises:
            StatementError: As `seen`.
        """
        return None if await self.sees_all(session) else await self.seen(session)

    async def holder(
        self, session: HandlerSession, *, timeout_s: float = FOLLOWED_TIMEOUT_S
    ) -> Holder:
        """Return a session's account and its rights.

        Args:
            session: The session of the account.
            timeout_s: The longest wait until the source's account statements are read, in seconds.

        Raises:
            StatementError: If its account is gone, or it is not known in time.
        """
        asked = await self._ask(session)
        known = self._holders.get(session)
        if known is not None and known[0] is asked:
            return known[1]
        deadline_s = time.monotonic() + timeout_s
        while True:
            names = {asked.account}
            if flavor_of(session.server_version) is Flavor.MARIADB:
                names.add(PUBLIC)
            if asked.role is not None:
                names |= await _roles(session, asked.account, asked.role)
            if not self._binlogs.grants:
                break
            await self._wait_until_followed(asked.done, deadline_s)
            # The statements read meanwhile may have been about the session's account, or about its
            # roles.
            before, asked = asked, await self._ask(session)
            if asked is before:
                break
        holder = Holder(
            account=asked.account,
            names=frozenset(names),
            privileges=asked.privileges,
            log_ids=frozenset(
                each.log_id for each in self._binlogs.grants if each.account in names
            ),
        )
        self._holders[session] = asked, holder
        return holder

    def _denied(self, privilege: SourcePrivilege) -> StatementError:
        beside = _BESIDE if privilege in _BY_GRANT else ""
        needed = SourcePrivilege.DEFINE if self._rule is BinlogAccess.GRANTED else privilege
        return denied(needed, beside=beside)

    async def _ask(self, session: HandlerSession) -> _Asked:
        """Return the source's answer about a session, asked again if something may have changed it.

        Raises:
            StatementError: If its account is gone.
        """
        known = self._asked.get(session)
        version, age = self._binlogs.access_version, session.age
        if known is not None and (known.version, known.age) == (version, age):
            return known
        flavor = flavor_of(session.server_version)
        rows = (await session.query_source(_WHO[flavor])).texts()
        if not rows or rows[0][0] is None:
            raise _unreadable()
        who, role, told = rows[0]
        user, _, host = _text(who).rpartition("@")
        account = AccountName(user, host)
        done = parse_position(told or "", flavor.value)
        since: Position = done
        lines = (await session.query_source("SHOW GRANTS")).texts()
        if known is not None and known.age.logins == age.logins and known.account == account:
            since = known.since
        departed = self._binlogs.departed.get(account)
        if departed is not None and not since.covers(departed):
            raise StatementError(
                f"Access denied for user {account.shown}: it was dropped or renamed",
                errno=_GONE,
                sqlstate="28000",
                hint="log in anew",
            )
        asked = self._asked[session] = _Asked(
            age=age,
            version=version,
            since=since,
            done=done,
            account=account,
            role=None if role is None else _text(role),
            privileges=global_privileges([row[0] or "" for row in lines]),
        )
        return asked

    async def _wait_until_followed(self, position: Position, deadline_s: float) -> None:
        """Wait until the grants follow the source's account statements up to a position.

        Raises:
            StatementError: Error 1205 if that takes too long.
        """
        pause_s = _POLL_FIRST_S
        while (read := self._binlogs.read_position) is None or not read.includes(position):
            if time.monotonic() >= deadline_s:
                raise StatementError(
                    "who may read which binlog is not known yet: the source's account statements "
                    f"were not read up to {position} in time",
                    errno=NOT_IN_TIME,
                    hint="try again; binlane's own log tells why the source's log is not read",
                )
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _POLL_LONGEST_S)


async def _roles(session: HandlerSession, account: AccountName, current: str) -> set[AccountName]:
    """The active roles of a session, with those that these were granted.

    One that was taken from the account in the meantime does not count, although the session goes on
    with it.
    """
    flavor = flavor_of(session.server_version)
    try:
        granted = [
            tuple(map(_text, row))
            for row in (await session.query_source(_ROLES[flavor] + ALL_ROWS)).texts()
        ]
        enabled = (
            ()
            if flavor is Flavor.MARIADB
            else (await session.query_source(_ENABLED + ALL_ROWS)).texts()
        )
    except StatementError:
        return set()  # a MySQL that does not tell
    edges = [
        (AccountName(one, host), AccountName(role, role_host))
        for one, host, role, role_host in granted
    ]
    if flavor is Flavor.MARIADB:
        own = {role for grantee, role in edges if grantee.user == f"{account.user}@{account.host}"}
        active = {AccountName(current, "")} & own
    else:
        own = {role for grantee, role in edges if grantee == account}
        active = {
            AccountName(_text(role), _text(host))
            for role, host, is_mandatory in enabled
            if AccountName(_text(role), _text(host)) in own or is_mandatory == "YES"
        }
    found: set[AccountName] = set()
    left = list(active)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [role for grantee, role in edges if grantee == name]
    return found


def _text(digits: str | None) -> str:
    """A name that the source gave in hexadecimal digits.

    Raises:
        StatementError: If those are none.
    """
    try:
        return bytes.fromhex(digits or "").decode()
    except ValueError:
        raise _unreadable() from None


def _unreadable() -> StatementError:
    return StatementError(
        "the session's account cannot be read",
        hint="SET NAMES utf8mb4, SET SESSION sql_select_limit = DEFAULT",
    )
