"""A source's facts, and if its log can be the ground truth.

Every fact that matters becomes a finding: fine, a warning, or what stops capture, with the SQL that
mends it. Capture raises the first that stops it; `setup --check` prints them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Self

from binlane.errors import ConfigError
from binlane.log.codec.format import flavor_of
from binlane.log.codec.types import Flavor
from binlane.positions import Gtid, GtidPosition, GtidSet

_VARIABLES: Final = (
    "version",
    "server_id",
    "server_uuid",
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "binlog_checksum",
    "lower_case_table_names",
    "log_slave_updates",
    "log_replica_updates",
    "expire_logs_days",
    "binlog_expire_logs_seconds",
    # MariaDB's.
    "gtid_domain_id",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_slave_pos",
    "gtid_strict_mode",
    "encrypt_binlog",
    "binlog_annotate_row_events",
    # MySQL's.
    "gtid_mode",
    "enforce_gtid_consistency",
    "gtid_executed",
    "gtid_purged",
    "binlog_encryption",
)
# SHOW gives those that the server has; a SELECT of @@variables fails at the first that it lacks.
FACTS_STATEMENT: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ("
    + ", ".join(f"'{name}'" for name in _VARIABLES)
    + ")"
)
ACCOUNT_STATEMENT: Final = "SELECT CURRENT_USER()"
GRANTS_STATEMENT: Final = "SHOW GRANTS"

_GLOBAL_GRANT: Final = re.compile(r"GRANT (?P<privileges>[A-Z_, ]+) ON \*\.\* TO ")
_REPLICATION: Final = "REPLICATION SLAVE"
_ALL: Final = "ALL PRIVILEGES"
_SUPER: Final = "SUPER"
_LOG_END: Final = {Flavor.MARIADB: "BINLOG MONITOR", Flavor.MYSQL: "REPLICATION CLIENT"}
_OLDEST: Final = {Flavor.MARIADB: (10, 6), Flavor.MYSQL: (8, 0)}
_NEWEST: Final = {Flavor.MARIADB: (11, 8), Flavor.MYSQL: (9, 7)}
_NEWER_STATUS: Final = (8, 2)
_SHORT_EXPIRY_S: Final = 86_400


class Weight(Enum):
    """A finding's meaning for capture."""

    FINE = "fine"
    WARNING = "warning"
    GAPS = "gaps"
    """Capture goes on, and rows are or may be missing in what it gets."""
    STOPS = "stops"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFinding:
    """One fact of a source, judged.

    Attributes:
        key: The server's variable, `privilege`, or binlane's setting.
        value: The value that was found.
        wanted: The value that it should be; empty where anything will do.
        weight: The meaning of the value for capture.
        reason: The harm of the value as it is; empty where there is none.
        mend: Statements for the source, in order, that mend it; empty where none can.
        note: The other work that is to be done, such as a restart with an option; mostly empty.
    """

    key: str
    value: str
    wanted: str = ""
    weight: Weight = Weight.FINE
    reason: str = ""
    mend: tuple[str, ...] = ()
    note: str = ""

    @property
    def is_lacking(self) -> bool:
        """True if something is to be done about the finding."""
        return self.weight in {Weight.STOPS, Weight.GAPS} or (
            self.weight is Weight.WARNING and bool(self.mend or self.note)
        )

    @property
    def hint(self) -> str:
        """The finding's remedy in one line."""
        statements = "; ".join(self.mend)
        told = f"on the source: {statements}" if statements else ""
        return "; ".join(filter(None, (told, self.note)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """Settings and state of a source when the capture connected.

    Attributes:
        version: The text of `@@version`, such as `10.11.19-MariaDB-log`.
        flavor: The flavor that the version tells.
        server_id: The source's own server id.
        server_uuid: MySQL's name of the server; empty of MariaDB.
        position: Every GTID in its log, and of MySQL also those purged from it.
        purged: MySQL: the GTIDs that are no more in its log.
        last_gtids: MariaDB: the last GTID of each domain and server in its log.
        lower_case_table_names: The variable's value: 0, 1 or 2.
        account: The account of binlane there, `user@host`; empty where it was not asked.
        grants: The account's, a line each; empty where they were not asked for.
        variables: All that was asked for, by name in lower case; those that it lacks are missing.
    """

    version: str
    flavor: Flavor
    server_id: int
    server_uuid: str
    position: GtidPosition | GtidSet
    purged: GtidSet
    last_gtids: tuple[Gtid, ...]
    lower_case_table_names: int
    account: str
    grants: tuple[str, ...]
    variables: Mapping[str, str]

    @classmethod
    def of(
        cls, variables: Mapping[str, str], *, account: str = "", grants: Sequence[str] = ()
    ) -> Self:
        """Read the rows of `FACTS_STATEMENT`, and the answers to the two others."""
        version = variables.get("version", "")
        flavor = flavor_of(version)
        position: GtidPosition | GtidSet
        if flavor is Flavor.MARIADB:
            position = GtidPosition.parse(variables.get("gtid_binlog_pos", ""))
        else:
            position = GtidSet.parse(variables.get("gtid_executed", ""))
        state = variables.get("gtid_binlog_state", "")
        return cls(
            version=version,
            flavor=flavor,
            server_id=int(variables.get("server_id", "0")),
            server_uuid=variables.get("server_uuid", ""),
            position=position,
            purged=GtidSet.parse(variables.get("gtid_purged", "")),
            last_gtids=tuple(Gtid.parse(part) for part in state.split(",") if part.strip()),
            lower_case_table_names=int(variables.get("lower_case_table_names", "0")),
            account=account,
            grants=tuple(grants),
            variables=variables,
        )

    @property
    def identity(self) -> str:
        """The name that tells the server from others: MySQL's UUID, MariaDB's server id."""
        return self.server_uuid or str(self.server_id)

    @property
    def number(self) -> tuple[int, ...]:
        """The first two numbers of the version."""
        return tuple(int(number) for number in re.findall(r"\d+", self.version)[:2])

    def has_privilege(self, name: str) -> bool:
        """True if the account has a global privilege, or may have it by way of a role."""
        # A role may bring it, which only the server knows.
        has_role = any(" ON " not in grant for grant in self.grants)
        return not self.grants or has_role or not {name, _ALL}.isdisjoint(self.privileges)

    @property
    def privileges(self) -> frozenset[str]:
        """The account's own global privileges."""
        matches = map(_GLOBAL_GRANT.match, self.grants)
        return frozenset(
            name.strip() for match in matches if match for name in match["privileges"].split(",")
        )

    def findings(self, *, server_id: int | None = None) -> list[SourceFinding]:
        """All facts that were looked at, judged.

        Args:
            server_id: The id that binlane uses there; None where it is not chosen yet.
        """
        return [
            self._version(),
            self._server_id(server_id),
            self._log_bin(),
            self._wants("binlog_format", "ROW", "its log does not hold whole rows"),
            self._wants("binlog_row_image", "FULL", "its log does not hold whole rows"),
            self._row_metadata(),
            self._checksum(),
            *self._gtids(),
            self._replicated(),
            self._privilege(),
            self._expiry(),
            *self._others(),
        ]

    def log_end(self) -> SourceFinding:
        """Judge the account's right to ask where the log ends; capture itself does without."""
        key, wanted = "log end", _LOG_END[self.flavor]
        if self.has_privilege(wanted) or self.has_privilege(_SUPER):
            return SourceFinding(key=key, value=wanted, wanted=wanted)
        return SourceFinding(
            key=key,
            value=", ".join(sorted(self.privileges)),
            wanted=wanted,
            weight=Weight.WARNING,
            reason=f"the account {self.account} lacks {wanted}: how many bytes binlogs are behind"
            " is not known",
            mend=(f"GRANT {wanted} ON *.* TO {quoted_account(self.account)}",),
        )

    def log_filters(self, only: str, ignored: str) -> SourceFinding:
        """Judge the source's filters, which leave databases out of its own log.

        Args:
            only: The value of `Binlog_Do_DB` in `log_end_statement`'s answer.
            ignored: The value of `Binlog_Ignore_DB` in that answer.
        """
        options = [
            f"--{option}={database}"
            for option, told in (("binlog-do-db", only), ("binlog-ignore-db", ignored))
            for database in told.split(",")
            if database
        ]
        if not options:
            return SourceFinding(key="binlog_do_db", value="")
        return SourceFinding(
            key="binlog_do_db",
            value=" ".join(options),
            weight=Weight.GAPS,
            reason=f"the source runs with {' '.join(options)}: what it leaves out of its log is in "
            "no binlog",
            note="start it without, and say what each binlog holds: CREATE BINLOG … LOG(…), IGNORE(…)",
        )

    def check(self, *, server_id: int) -> None:
        """Refuse a source whose log does not say everything.

        Args:
            server_id: The id that binlane uses there.

        Raises:
            ConfigError: Its key is the source's variable, or binlane's setting, to change.
        """
        for finding in self.findings(server_id=server_id):
            if finding.weight is Weight.STOPS:
                raise ConfigError(finding.reason, key=finding.key, hint=finding.hint)

    def warnings(self) -> Iterator[SourceFinding]:
        """Give the findings of settings that are not wrong, but lose something."""
        weights = {Weight.WARNING, Weight.GAPS}
        return (found for found in self.findings() if found.weight in weights)

    def _has(self, name: str, default: str = "") -> str:
        return self.variables.get(name, default)

    def _set(self, name: str, value: str) -> str:
        """The statement that sets a variable for good, as far as the server can."""
        return f"SET {'GLOBAL' if self.flavor is Flavor.MARIADB else 'PERSIST'} {name} = {value}"

    def _option_note(self, name: str, value: str) -> str:
        note = "let clients connect anew"
        if self.flavor is Flavor.MARIADB:
            note = f"write {name} = {value} into its option file, and {note}"
        return note

    def _version(self) -> SourceFinding:
        numbers = self.number
        oldest, newest = _OLDEST[self.flavor], _NEWEST[self.flavor]
        wanted = f"{self.flavor.value} {oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}"
        if oldest <= numbers <= newest:
            return SourceFinding(key="version", value=self.version, wanted=wanted)
        return SourceFinding(
            key="version",
            value=self.version,
            wanted=wanted,
            weight=Weight.WARNING,
            reason=f"the source is {self.version}, which nobody tried binlane with",
        )

    def _server_id(self, ours: int | None) -> SourceFinding:
        value = str(self.server_id)
        if self.server_id != ours:
            return SourceFinding(key="server_id", value=value)
        return SourceFinding(
            key="source.server_id",
            value=value,
            wanted="another one",
            weight=Weight.STOPS,
            reason=f"server id {ours} is the source's own",
            note="give binlane another source.server_id",
        )

    def _log_bin(self) -> SourceFinding:
        value = self._has("log_bin", "OFF")
        if value in {"ON", "1"}:
            return SourceFinding(key="log_bin", value=value, wanted="ON")
        return SourceFinding(
            key="log_bin",
            value=value,
            wanted="ON",
            weight=Weight.STOPS,
            reason="the source writes no binlog",
            note="start it with --log-bin --binlog-format=ROW --binlog-row-metadata=FULL",
        )

    def _wants(self, key: str, wanted: str, reason: str) -> SourceFinding:
        value = self._has(key, wanted)
        if value == wanted:
            return SourceFinding(key=key, value=value, wanted=wanted)
        return SourceFinding(
            key=key,
            value=value,
            wanted=wanted,
            weight=Weight.STOPS,
            reason=f"the source has {key} = {value}, so {reason}",
            mend=(self._set(key, wanted),),
            note=self._option_note(key, wanted),
        )

    def _row_metadata(self) -> SourceFinding:
        key, value = "binlog_row_metadata", self._has("binlog_row_metadata", "NO_LOG")
        if value == "FULL":
            return SourceFinding(key=key, value=value, wanted="FULL")
        return SourceFinding(
            key=key,
            value=value,
            wanted="FULL",
            weight=Weight.WARNING,
            reason=(
                f"the source has binlog_row_metadata = {value}: columns will be @1, @2, ... "
                "without names"
            ),
            mend=(self._set(key, "FULL"),),
            note=self._option_note(key, "FULL"),
        )

    def _checksum(self) -> SourceFinding:
        key, value = "binlog_checksum", self._has("binlog_checksum", "NONE")
        if value == "CRC32":
            return SourceFinding(key=key, value=value, wanted="CRC32")
        return SourceFinding(
            key=key,
            value=value,
            wanted="CRC32",
            weight=Weight.WARNING,
            reason=f"the source has binlog_checksum = {value}: damage of its log goes unnoticed",
            mend=(self._set(key, "CRC32"),),
            note=self._option_note(key, "CRC32"),
        )

    def _gtids(self) -> Iterator[SourceFinding]:
        if self.flavor is Flavor.MARIADB:
            yield self._strict_mode()
            return
        value = self._has("gtid_mode", "OFF")
        if value == "ON":
            yield SourceFinding(key="gtid_mode", value=value, wanted="ON")
        else:
            steps = ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
            left = steps[steps.index(value) + 1 :] if value in steps else steps
            yield SourceFinding(
                key="gtid_mode",
                value=value,
                wanted="ON",
                weight=Weight.STOPS,
                reason=f"the source has gtid_mode = {value}: its transactions have no GTIDs",
                mend=(
                    "SET PERSIST enforce_gtid_consistency = ON",
                    *(f"SET PERSIST gtid_mode = {step}" for step in left),
                ),
                note="replicas of it must have gtid_mode = ON_PERMISSIVE or ON before the last",
            )
        consistency = self._has("enforce_gtid_consistency", "OFF")
        yield SourceFinding(key="enforce_gtid_consistency", value=consistency, wanted="ON")

    def _strict_mode(self) -> SourceFinding:
        key, value = "gtid_strict_mode", self._has("gtid_strict_mode", "OFF")
        if value in {"ON", "1"}:
            return SourceFinding(key=key, value=value, wanted="ON")
        return SourceFinding(
            key=key,
            value=value,
            wanted="ON",
            weight=Weight.WARNING,
            reason=(
                f"the source has gtid_strict_mode = {value}: it may write GTIDs that are out of "
                "order, at which binlane stops"
            ),
            mend=(self._set(key, "ON"),),
            note=self._option_note(key, "ON"),
        )

    def _replicated(self) -> SourceFinding:
        key = "log_replica_updates" if "log_replica_updates" in self.variables else ""
        key = key or "log_slave_updates"
        value = self._has(key, "ON")
        is_replica = self.flavor is Flavor.MYSQL or bool(self._has("gtid_slave_pos"))
        if value in {"ON", "1"} or not is_replica:
            return SourceFinding(key=key, value=value, wanted="ON" if is_replica else "")
        return SourceFinding(
            key=key,
            value=value,
            wanted="ON",
            weight=Weight.GAPS,
            reason=f"the source has {key} = {value}: what it replicates is not in its own log",
            note=f"start it with --{key.replace('_', '-')}=ON if it is a replica",
        )

    def _privilege(self) -> SourceFinding:
        key = "privilege"
        if self.has_privilege(_REPLICATION):
            return SourceFinding(key=key, value=_REPLICATION, wanted=_REPLICATION)
        return SourceFinding(
            key=key,
            value=", ".join(sorted(self.privileges)),
            wanted=_REPLICATION,
            weight=Weight.STOPS,
            reason=f"the account {self.account} lacks {_REPLICATION}",
            mend=(f"GRANT {_REPLICATION} ON *.* TO {quoted_account(self.account)}",),
        )

    def _expiry(self) -> SourceFinding:
        key, value = "binlog_expire_logs_seconds", self._has("binlog_expire_logs_seconds")
        days = self._has("expire_logs_days", "0")
        # MariaDB before 10.6.1 has days only; a value may have a fraction.
        seconds = float(value or 0) or float(days or 0) * 86_400
        if not 0 < seconds < _SHORT_EXPIRY_S:
            return SourceFinding(key=key, value=value or days)
        return SourceFinding(
            key=key,
            value=value or days,
            weight=Weight.WARNING,
            reason=(
                f"the source deletes its logs after {seconds:.0f} s: if binlane is away for longer, "
                "it cannot go on where it was"
            ),
        )

    def _others(self) -> Iterator[SourceFinding]:
        for name in (
            "lower_case_table_names",
            "binlog_row_value_options",
            "binlog_annotate_row_events",
            "encrypt_binlog",
            "binlog_encryption",
        ):
            if name in self.variables:
                yield SourceFinding(key=name, value=self.variables[name])


def log_end_statement(version: str) -> str:
    """Return the statement that tells where a server's log ends, and what is left out of it.

    Its columns are File, Position, Binlog_Do_DB and Binlog_Ignore_DB. It needs BINLOG MONITOR, of
    MySQL REPLICATION CLIENT.
    """
    if flavor_of(version) is Flavor.MARIADB:
        return "SHOW MASTER STATUS"
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    return "SHOW BINARY LOG STATUS" if numbers >= _NEWER_STATUS else "SHOW MASTER STATUS"


def quoted_account(account: str) -> str:
    """`user@host` as statements have it."""
    user, _, host = account.rpartition("@")
    parts = (part.replace("\\", "\\\\").replace("'", "''") for part in (user, host))
    return "@".join(f"'{part}'" for part in parts)
