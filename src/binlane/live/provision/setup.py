"""Prepares a server as a source, or tells what it lacks: the findings of `capture`, mended.

What is said is a script: statements as they are run or are to be run, and remarks as comments.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from binlane.client.account import account_at
from binlane.client.authentication import CACHING_SHA2_PASSWORD
from binlane.client.conversation import hold
from binlane.client.dialogue import Account, Dialogue, ask, log_in
from binlane.client.settings import ServerUrl
from binlane.errors import PeerError
from binlane.live.capture.asking import ask_facts
from binlane.live.capture.source_facts import (
    SourceFacts,
    SourceFinding,
    Weight,
    log_end_statement,
    quoted_account,
)
from binlane.live.provision.source_schema import (
    ANNOTATES_STATEMENT,
    OBJECTS_STATEMENT,
    SourceSchema,
)
from binlane.log.codec.password_hashes import (
    SALT_LENGTH,
    SHA2_ROUNDS,
    caching_sha2_hash,
    native_hash,
)
from binlane.log.codec.types import Flavor

SHOWN_HASH: Final = "<hash of the password>"
"""Stands in its place in the script."""
_NAMES: Final = {Flavor.MARIADB: "MariaDB", Flavor.MYSQL: "MySQL"}
_NO_SUCH_GRANT: Final = 1141
_PREVENTED_BY_OPTION: Final = 1290
_ROUNDS_STATEMENT: Final = "SHOW GLOBAL VARIABLES LIKE 'caching_sha2_password_digest_rounds'"
_ANONYMOUS_WAIT_S: Final = 30.0
_ANONYMOUS_STATEMENT: Final = "SHOW GLOBAL STATUS LIKE 'Ongoing_anonymous_transaction_count'"
_LAST_GTID_STEP: Final = "gtid_mode = ON"
_POLL_S: Final = 0.2
_SEES_ALL: Final = "SELECT 1 FROM mysql.user LIMIT 1"
_SHOWN_SESSIONS: Final = 10
_WITHOUT: Final = (
    "for binlogs of rows this is all. Not judged are statements at the port, nor is it known how"
    " many bytes binlogs are behind; without --rows-only setup makes both so"
)
_NO_HASHES: Final = (
    "the server checks passwords and takes no hash for one: SET GLOBAL strict_password_validation ="
    " OFF until the account is made, or make it yourself and give this command its name"
)

# A restart may bring back another value than the one that is good now. MySQL notes SET SESSION as
# if it were SET GLOBAL, so of its variables only those are asked for that no session has.
_AT_RUNTIME: Final = {
    Flavor.MARIADB: "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE"
    " FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE_ORIGIN = 'SQL' AND VARIABLE_NAME"
    " IN ('binlog_format', 'binlog_row_image', 'binlog_row_metadata', 'binlog_checksum',"
    " 'gtid_strict_mode') ORDER BY 1",
    Flavor.MYSQL: "SELECT VARIABLE_NAME, g.VARIABLE_VALUE"
    " FROM performance_schema.variables_info i"
    " JOIN performance_schema.global_variables g USING (VARIABLE_NAME)"
    " LEFT JOIN performance_schema.persisted_variables p USING (VARIABLE_NAME)"
    " WHERE i.VARIABLE_SOURCE = 'DYNAMIC' AND p.VARIABLE_NAME IS NULL AND VARIABLE_NAME"
    " IN ('binlog_row_metadata', 'binlog_checksum', 'gtid_mode', 'enforce_gtid_consistency')"
    " ORDER BY 1",
}
# Settings that a session took over when it began stay its own.
_OTHER_SESSIONS: Final = {
    Flavor.MARIADB: "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()"
    " AND COMMAND NOT IN ('Binlog Dump', 'Daemon') ORDER BY 1",
    Flavor.MYSQL: "SELECT DISTINCT PROCESSLIST_ID FROM performance_schema.variables_by_thread"
    " JOIN performance_schema.threads USING (THREAD_ID)"
    " WHERE (VARIABLE_NAME, VARIABLE_VALUE) IN (('binlog_format', 'MIXED'),"
    " ('binlog_format', 'STATEMENT'), ('binlog_row_image', 'MINIMAL'),"
    " ('binlog_row_image', 'NOBLOB')) AND PROCESSLIST_ID <> CONNECTION_ID() ORDER BY 1",
}

Say = Callable[[str], None]
"""Takes a line of the script."""


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account for binlane, to be made where it is missing.

    Attributes:
        user: The account's name without a host.
        host: The host from which it may log in, such as `%`.
        password: The account's password in plain text.
    """

    user: str
    host: str
    password: str = field(repr=False)

    @property
    def name(self) -> str:
        """`user@host`."""
        return f"{self.user}@{self.host}"


@dataclass(frozen=True, slots=True)
class SetUp:
    """The state in which a server was left.

    Attributes:
        lacking: The findings that still have to be mended.
    """

    lacking: tuple[SourceFinding, ...]


class Purpose(Enum):
    """The purpose for which a source is prepared."""

    ROWS = "rows"
    """The source's log, and binlogs of rows: an account with REPLICATION SLAVE is all they need."""
    JUDGED = "judged"
    """Statements at the port are judged, and binlogs may hold them, but for temporary tables."""
    ALL = "all"
    """Statements on temporary tables, too: the source gets a table for marks."""


def set_up(
    url: ServerUrl,
    password: str,
    say: Say,
    *,
    is_check: bool,
    new: NewAccount | None = None,
    purpose: Purpose = Purpose.ALL,
) -> SetUp:
    """Prepare a server, or tell the statements that would do so.

    Args:
        url: The server, and the account that does it.
        password: The password of that account.
        say: Takes the script, line by line, as it is run.
        is_check: True if nothing is to be changed.
        new: The account that `serve` will use; that of `url` where it is None.
        purpose: The purpose for which the source is prepared.

    Raises:
        PeerError: If the server cannot be reached, or refuses what everybody may ask.
    """
    account = account_at(url, password)
    preparation = _Preparation(account, say, is_check=is_check, new=new, purpose=purpose)
    return hold(url, preparation.dialogue())


class _Preparation:
    def __init__(
        self,
        account: Account,
        say: Say,
        *,
        is_check: bool,
        new: NewAccount | None,
        purpose: Purpose,
    ) -> None:
        self._account = account
        self._peer = account.peer
        self._say = say
        self._is_check = is_check
        self._new = new
        self._purpose = purpose

    def dialogue(self) -> Dialogue[SetUp]:
        yield from log_in(self._account)
        facts = yield from ask_facts(self._peer)
        self._say(f"-- {self._peer}: {_NAMES[facts.flavor]} {facts.version}")
        if self._new is not None:
            facts = yield from self._make_account(self._new, facts)
        filters = yield from self._log_filters(facts)
        findings = [*self._findings(facts), *filters]
        changed = [found.key for found in findings if found.is_lacking]
        for found in findings:
            yield from self._deal_with(found)
        changed += yield from self._prepare_port(facts)
        if changed and not self._is_check:
            facts = yield from self._facts_again()
        findings = [*self._findings(facts), *filters]
        if self._purpose is Purpose.ROWS:
            self._say(f"-- {_WITHOUT}")
        else:
            schema = yield from self._ask_schema(facts)
            findings += schema.findings()
        if changed and not self._is_check:
            for found in filter(_is_lacking, findings):
                self._say(f"-- still: {found.reason}")
        yield from self._runtime_values(facts.flavor)
        yield from self._old_sessions(facts.flavor, changed)
        lacking = tuple(filter(_is_lacking, findings))
        if not lacking:
            self._say("-- nothing is missing")
        return SetUp(lacking)

    def _findings(self, facts: SourceFacts) -> list[SourceFinding]:
        """Return the findings on the log and the account."""
        found = facts.findings()
        return found if self._purpose is Purpose.ROWS else [*found, facts.log_end()]

    def _log_filters(self, facts: SourceFacts) -> Dialogue[list[SourceFinding]]:
        """Return findings on databases that the source leaves out of its log, where this account may ask."""
        rows = yield from self._rows(log_end_statement(facts.version))
        return [facts.log_filters(only, ignored) for _, _, only, ignored, *_ in rows]

    def _make_account(self, new: NewAccount, facts: SourceFacts) -> Dialogue[SourceFacts]:
        """Make the account where it is missing; the facts as it sees them."""
        name = quoted_account(new.name)
        grants = yield from self._grants_of(name)
        if grants:
            self._say(f"-- the account {new.name} is there; its password stays")
        else:
            # A server may log the statement as it comes.
            how, hashed = yield from self._hashed(new.password, facts.flavor)
            create = f"CREATE USER {name} IDENTIFIED {how} "
            refusal = yield from self._refusal(
                create + _string(hashed), shown=create + _string(SHOWN_HASH)
            )
            if refusal == _PREVENTED_BY_OPTION:
                self._say(f"-- {_NO_HASHES}")
            grants = _no_grants(name)
        return replace(facts, account=new.name, grants=grants)

    def _hashed(self, password: str, flavor: Flavor) -> Dialogue[tuple[str, str]]:
        """Return the SQL before a stored password in a statement, and the password as it is stored."""
        if flavor is Flavor.MARIADB:
            return "BY PASSWORD", native_hash(password.encode())
        rows = yield from self._rows(_ROUNDS_STATEMENT)
        rounds = int(rows[0][1]) if rows else SHA2_ROUNDS
        hashed = caching_sha2_hash(password.encode(), secrets.token_bytes(SALT_LENGTH), rounds)
        return f"WITH {CACHING_SHA2_PASSWORD} AS", hashed

    def _grants_of(self, name: str) -> Dialogue[tuple[str, ...]]:
        try:
            answer = yield from ask(f"SHOW GRANTS FOR {name}", peer=self._peer)
        except PeerError as error:
            if error.errno == _NO_SUCH_GRANT:
                return ()
            raise
        return tuple(row[0] or "" for row in answer.texts()) if answer else ()

    def _facts_again(self) -> Dialogue[SourceFacts]:
        facts = yield from ask_facts(self._peer)
        if self._new is None:
            return facts
        name = quoted_account(self._new.name)
        # An account that could not be made has no grants; none at all would mean that nobody asked.
        grants = (yield from self._grants_of(name)) or _no_grants(name)
        return replace(facts, account=self._new.name, grants=grants)

    def _prepare_port(self, facts: SourceFacts) -> Dialogue[list[str]]:
        """Deal with what the port needs; the keys of what lacked."""
        changed: list[str] = []
        while self._purpose is not Purpose.ROWS:
            # The remedy of one finding may be the subject of another.
            schema = yield from self._ask_schema(facts)
            found = [each for each in schema.findings() if each.key not in changed]
            lacking = [each for each in found if each.weight is not Weight.FINE]
            for each in lacking if self._is_check else lacking[:1]:
                yield from self._deal_with(each)
                changed.append(each.key)
            if self._is_check or not lacking:
                break
        return changed

    def _ask_schema(self, facts: SourceFacts) -> Dialogue[SourceSchema]:
        objects = yield from self._rows(OBJECTS_STATEMENT)
        # An account that sees no tables of others does not see this one, either.
        is_seen = objects or (yield from self._seen(_SEES_ALL))
        annotates = yield from self._rows(ANNOTATES_STATEMENT)
        return SourceSchema(
            facts=facts,
            objects=objects if is_seen else None,
            has_marks=self._purpose is Purpose.ALL,
            annotates=annotates[0][1] == "ON" if annotates else None,
        )

    def _deal_with(self, found: SourceFinding) -> Dialogue[None]:
        """Tell a finding, and mend it."""
        if found.weight is Weight.FINE:
            return
        self._say(f"-- {found.reason}")
        for statement in found.mend:
            if not (yield from self._run(statement)):
                break
        if found.note:
            self._say(f"-- {found.note}")

    def _run(self, statement: str) -> Dialogue[bool]:
        """Run a statement of the script; whether it was run, or may be."""
        return (yield from self._refusal(statement)) is None

    def _refusal(self, statement: str, *, shown: str = "") -> Dialogue[int | None]:
        """Run a statement of the script; the error with which it is refused, None without."""
        self._say(f"{shown or statement};")
        if self._is_check:
            return None
        if statement.endswith(_LAST_GTID_STEP):
            yield from self._wait_for_anonymous()
        try:
            yield from ask(statement, peer=self._peer)
        except PeerError as error:
            if error.errno is None:
                raise
            self._say(f"-- refused: {error.message}")
            return error.errno
        return None

    def _wait_for_anonymous(self) -> Dialogue[None]:
        """Let transactions without a GTID end: the server takes the last step only behind them."""
        deadline_s = time.monotonic() + _ANONYMOUS_WAIT_S
        while time.monotonic() < deadline_s:
            rows = yield from self._rows(_ANONYMOUS_STATEMENT)
            if all(row[1] == "0" for row in rows):
                return
            time.sleep(_POLL_S)

    def _runtime_values(self, flavor: Flavor) -> Dialogue[None]:
        """Say which good values a restart would lose."""
        found = yield from self._rows(_AT_RUNTIME[flavor])
        if not found:
            return
        if flavor is Flavor.MYSQL:
            self._say("-- set while the server runs, and lost when it restarts:")
            for name, value in found:
                yield from self._run(f"SET PERSIST {name} = {value}")
            return
        self._say("-- set while the server runs, and lost when it restarts; for an option file:")
        self._say("-- [mariadbd]")
        for name, value in found:
            self._say(f"-- {name} = {value}")

    def _old_sessions(self, flavor: Flavor, changed: Sequence[str]) -> Dialogue[None]:
        """Say which sessions go on logging as before."""
        if flavor is Flavor.MARIADB and not {"binlog_format", "binlog_row_image"} & set(changed):
            return
        found = yield from self._rows(_OTHER_SESSIONS[flavor])
        if found:
            ids = ", ".join(row[0] for row in found[:_SHOWN_SESSIONS])
            more = ", …" if len(found) > _SHOWN_SESSIONS else ""
            self._say(
                f"-- sessions that log as they did until their clients connect anew: {ids}{more}"
            )

    def _rows(self, statement: str) -> Dialogue[list[tuple[str, ...]]]:
        """The rows of a question that the account may not be allowed to ask."""
        return (yield from self._seen(statement)) or []

    def _seen(self, statement: str) -> Dialogue[list[tuple[str, ...]] | None]:
        """The rows of a question; None if the account may not ask it."""
        try:
            answer = yield from ask(statement, peer=self._peer)
        except PeerError as error:
            if error.errno is None:
                raise
            return None
        rows: Iterator[tuple[str | None, ...]] = iter(answer.texts() if answer else ())
        return [tuple(cell or "" for cell in row) for row in rows]


def _no_grants(account: str) -> tuple[str, ...]:
    return (f"GRANT USAGE ON *.* TO {account}",)


def _is_lacking(found: SourceFinding) -> bool:
    return found.is_lacking


def _string(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
