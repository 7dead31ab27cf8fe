"""The rows of the tables of `system`, from what binlane knows (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from binlane.binlogs.store.catalog import ScopeChange
from binlane.binlogs.store.grants import ReadGrant
from binlane.binlogs.store.incidents import StoredIncident
from binlane.live.answers.system_tables.system_columns import Row, Snapshot
from binlane.statements.scope.definition import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogFacts:
    """A binlog at the moment.

    Attributes:
        definition: The binlog's name, id, scope and logging mode.
        state: The state as SHOW BINLOGS tells it.
        file: The file that is being written.
        position: The end of its last event group, in bytes.
        gtid_complete: The watermark as a text of GTIDs.
        problem: The problem as SHOW BINLOGS tells it.
        incidents: INCIDENT events in it that nobody has dealt with.
    """

    definition: Definition
    state: str
    file: str
    position: int
    gtid_complete: str
    problem: str = ""
    incidents: Sequence[StoredIncident] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFacts:
    """A replica whose dump is running.

    Attributes:
        server_id: Given by the replica when it registers or begins to dump.
        host: The address of the replica.
        user: Account that it logged in with.
        binlog: Name of the binlog that it reads.
        connection_id: The thread id of its session on the source.
    """

    server_id: int
    host: str
    user: str
    binlog: str
    connection_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFacts:
    """The last comparison of a table with a server.

    Attributes:
        binlog: Name of the table's binlog.
        table: The table's name as `database.table`.
        server: `source`, or a replica's address.
        finding: The words `equal`, `different` or `not compared`; `comparing` for the comparison that
            runs at present.
        gtid: The position as of which the table was compared.
        since: The position from which on changes were compared; empty of a whole table.
        rows: The number of rows on the server.
        checked: The time of the comparison, in UTC; None if there was none.
        outcome: The outcome in one line for people.
    """

    binlog: str
    table: str
    server: str
    finding: str
    gtid: str
    since: str
    rows: int
    checked: str | None
    outcome: str


def snapshot(
    binlogs: Sequence[BinlogFacts],
    history: Iterable[ScopeChange],
    replicas: Iterable[ReplicaFacts],
    grants: Iterable[ReadGrant] = (),
    checks: Iterable[CheckFacts] = (),
) -> Snapshot:
    """The rows of all tables, one cell a column of `schema.TABLES`."""
    history = list(history)
    made = {each.log_id: each.changed for each in history if each.change == "create"}
    definitions = [(each.definition.log_id, each.definition.scope) for each in binlogs]
    ids = {each.definition.name: each.definition.log_id for each in binlogs}
    names = {log_id: name for name, log_id in ids.items()}
    return {
        "binlogs": [_binlog(each, made.get(each.definition.log_id)) for each in binlogs],
        "binlog_log_databases": [
            (log_id, name) for log_id, scope in definitions for name in sorted(scope.log_databases)
        ],
        "binlog_log_tables": [
            (log_id, name.database, name.table)
            for log_id, scope in definitions
            for name in sorted(scope.log_tables)
        ],
        "binlog_ignore_databases": [
            (log_id, name)
            for log_id, scope in definitions
            for name in sorted(scope.ignore_databases)
        ],
        "binlog_ignore_tables": [
            (log_id, name.database, name.table)
            for log_id, scope in definitions
            for name in sorted(scope.ignore_tables)
        ],
        "binlog_scope_history": [
            (
                *(each.log_id, each.name, each.change, each.gtids, utc(each.changed)),
                *(each.logging_mode, each.log_all_dbs, each.log_list, each.ignore_list),
            )
            for each in history
        ],
        "binlog_replicas": [
            (
                *(each.server_id, each.host, each.user, each.binlog, ids.get(each.binlog)),
                each.connection_id,
            )
            for each in replicas
        ],
        "binlog_incidents": [
            (
                *(binlog.definition.name, binlog.definition.log_id, each.file, each.position),
                *(each.gtid, utc(each.timestamp), each.reason, each.count),
            )
            for binlog in binlogs
            for each in binlog.incidents
        ],
        "binlog_checks": [
            (
                *(each.binlog, ids.get(each.binlog), each.table, each.server, each.finding),
                *(each.gtid, each.since, each.rows, each.checked, each.outcome),
            )
            for each in checks
        ],
        "binlog_grants": [
            (names[each.log_id], each.log_id, *each.account, utc(each.granted))
            for each in grants
            if each.log_id in names
        ],
    }


def _binlog(facts: BinlogFacts, made: int | None) -> Row:
    definition = facts.definition
    return (
        definition.name,
        definition.log_id,
        int(definition.scope.log_all),
        definition.logging_mode.value,
        facts.state,
        facts.file,
        facts.position,
        facts.gtid_complete,
        None if made is None else utc(made),
        facts.problem,
        definition.row_image.value,
        "ON" if definition.is_compressed else "OFF",
        "FOLLOW" if definition.follows_cascades else "NOFOLLOW",
    )


def utc(seconds: int) -> str:
    """A time in UTC as SQL has it; one that no calendar has is given in seconds."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError):
        return str(seconds)
