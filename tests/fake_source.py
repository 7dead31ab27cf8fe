"""A source without a server: its answers are written down, and its log is counted.

`FakeSource` stands for a MariaDB server, as the port meets it: it answers questions about objects, takes
marks, and opens sessions. A `FakeClient` is one session there, which notes each statement that binlane
asks in it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.client.needed_objects import Question
from binlane.client.questions import Answer, AskingContext, asking
from binlane.errors import StatementError
from binlane.live.gateway.handler import SessionAge
from binlane.live.gateway.judge import ClientStatement, Judge, RunVerdict, StatementReply, Verdict
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.port.attributions import Attributions
from binlane.live.port.live_catalog import LiveCatalog
from binlane.live.port.port_parts import PortParts
from binlane.live.port.unread import holds_all_rows
from binlane.log.codec.packets.commands import RegisterSlave
from binlane.log.codec.packets.flags import Capability, ServerStatus
from binlane.log.codec.packets.results import ColumnDefinition, ResultSet
from binlane.log.codec.packets.session_state import SessionState
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import TableName
from binlane.positions import MysqlGtid, parse_position
from binlane.statements.policy.server import Server
from binlane.statements.scope.definition import Definition

VERSION: Final = "10.11.19-MariaDB-log"
_NO_SUCH_TABLE: Final = 1146
_UTF8MB4: Final = 45
_VALUES: Final = {
    "DATABASE()": "d",
    "VERSION()": VERSION,
    "@@in_transaction": "0",
    "@@SESSION.autocommit": "1",
    "@@SESSION.binlog_direct_non_transactional_updates": "0",
    "@@SESSION.binlog_format": "ROW",
    "@@SESSION.binlog_row_image": "FULL",
    "@@SESSION.default_storage_engine": "InnoDB",
    "@@SESSION.default_tmp_storage_engine": "",
    "@@SESSION.sql_log_bin": "1",
    "@@SESSION.sql_mode": "STRICT_TRANS_TABLES",
    "@@SESSION.character_set_client": "utf8mb4",
    "@@SESSION.foreign_key_checks": "1",
    "@@SESSION.tx_isolation": "REPEATABLE-READ",
    "@@SESSION.session_track_system_variables": "autocommit",
    "@@last_gtid": "",
    "@@GLOBAL.gtid_binlog_pos": "0-1-10",
    "@@pseudo_thread_id": "7",
    "@@sql_mode": "STRICT_TRANS_TABLES",
    "@@auto_increment_increment": "1",
    "@@auto_increment_offset": "1",
    "@@character_set_client": "utf8mb4",
    "@@collation_connection": "utf8mb4_general_ci",
    "@@collation_server": "latin1_swedish_ci",
    "@@time_zone": "SYSTEM",
    "@@lc_time_names": "en_US",
    "@@collation_database": "latin1_swedish_ci",
    "@@sql_auto_is_null": "0",
    "@@foreign_key_checks": "1",
    "@@unique_checks": "1",
    "@@timestamp": "1800000000.250000",
    "@@check_constraint_checks": "1",
    "@@explicit_defaults_for_timestamp": "1",
    "@@sql_if_exists": "0",
    "@@secure_timestamp": "NO",
    "@@character_set_collations": "",
    "@@system_versioning_insert_history": "0",
    "LAST_INSERT_ID()": "4",
}
"""Values of a session's expressions, as a new MariaDB session has them."""
_WRAPPED: Final = re.compile(r"SET STATEMENT .* FOR ", re.DOTALL)
_CREATED: Final = re.compile(r"SHOW CREATE TABLE `?(\w+)`?\.`?(\w+)`?")


def result(heads: Sequence[str], *rows: Sequence[str | None]) -> ResultSet:
    """Rows of texts as a server sends them."""
    return ResultSet(
        tuple(heads),
        tuple(tuple(None if cell is None else cell.encode() for cell in row) for row in rows),
        ServerStatus.AUTOCOMMIT,
        tuple(
            ColumnDefinition(name=head, character_set=_UTF8MB4, type_code=ColumnType.VAR_STRING)
            for head in heads
        ),
    )


class FakeSource:
    """A MariaDB server whose objects and values are written down; the `ObjectSource` of a catalog.

    Attributes:
        incarnation: Number of times that the source was lost, as in `ObjectSource`.
        tables: Statements that make the tables, by name.
        asked: Questions that were asked about objects, in order.
        marked: Threads for which a mark was made.
        problem: Error that every question raises; None for answers.
    """

    def __init__(self, *tables: str, database: str = "d") -> None:
        """Begin with tables.

        Args:
            tables: Statements that make the tables.
            database: Database of the tables.
        """
        self.incarnation = 0
        self.tables = {
            TableName(database, text.split("(")[0].split()[2].strip("`")): text for text in tables
        }
        self.asked: list[Question] = []
        self.marked: list[int] = []
        self.problem: StatementError | None = None
        self._next = 11

    # As an `ObjectSource`.

    def meet(self) -> Server:
        """Tell its flavor and version."""
        if self.problem is not None:
            raise self.problem
        return Server.of("mariadb", VERSION)

    def answer(self, question: Question, asked: AskingContext) -> Answer:
        """Answer a question about objects."""
        self.asked.append(question)
        steps = asking(question, asked)
        try:
            statement = next(steps)
            while True:
                try:
                    rows = self._rows(statement)
                except StatementError as error:
                    statement = steps.throw(error)
                else:
                    statement = steps.send(rows)
        except StopIteration as stop:
            found: Answer = stop.value
            return found

    def after(self, gtid: MysqlGtid) -> None:
        """Do nothing: that is MySQL's."""

    def drop(self) -> None:
        """Be another server from now on."""
        self.incarnation += 1

    def _rows(self, statement: str) -> list[list[str | None]]:
        if self.problem is not None:
            raise self.problem
        created = _CREATED.match(statement)
        if created is not None:
            name = TableName(created[1], created[2])
            if name not in self.tables:
                raise StatementError(f"Table '{name}' doesn't exist", errno=_NO_SUCH_TABLE)
            return [[name.table, self.tables[name]]]
        if "SCHEMATA" in statement:
            return [[name, "latin1"] for name in {name.database: None for name in self.tables}]
        if statement.startswith("SHOW GLOBAL VARIABLES"):
            return [["binlog_format", "ROW"], ["lower_case_table_names", "0"]]
        return []

    # As a `SourceMarks`.

    async def open(self) -> None:
        """Do nothing: it is always there."""

    async def mark(self, thread_id: int, there_s: float) -> str:
        """Log a group for a session; gives its GTID."""
        del there_s
        self.marked.append(thread_id)
        return self.logged()

    async def executed(self) -> str:
        """Fail: that is MySQL's."""
        raise StatementError("the source is no MySQL")

    def close(self) -> None:
        """Do nothing, as `ObjectSource` and as `SourceMarks`."""

    def logged(self) -> str:
        """Log a group; gives its GTID."""
        gtid, self._next = f"0-1-{self._next}", self._next + 1
        return gtid


class FakeClient:
    """A client's session on a `FakeSource`; a `SessionContext`.

    Attributes:
        values: Values of the session's expressions, by their text.
        statements: Statements that binlane had the source run in the session.
        answers: Gives the rows of a statement that asks for something else than `values`, or raises.
    """

    def __init__(self, thread_id: int = 7) -> None:
        self.user = "someone"
        self.peer = "127.0.0.1:1"
        self.thread_id = thread_id
        self.is_tls = False
        self.connection: socket.socket | None = None
        self.age = SessionAge()
        self.server_version = VERSION
        self.capabilities = Capability(0)
        self.variables: dict[str, str | None] = {}
        self.replica: RegisterSlave | None = None
        self.values: dict[str, str | None] = dict(_VALUES)
        self.statements: list[str] = []
        self.answers: Callable[[str], ResultSet | None] = lambda _: None

    async def query_source(self, statement: str) -> ResultSet:
        """Answer a SELECT of expressions, or what the test says."""
        self.statements.append(statement)
        given = self.answers(statement)
        if given is not None:
            return given
        wanted = _WRAPPED.sub("", statement).removeprefix("SELECT ").removesuffix(" LIMIT 1")
        names = wanted.split(", ")
        unknown = [name for name in names if name not in self.values]
        if unknown:
            raise StatementError(f"nobody told the fake of {unknown}", errno=1064)
        return result(names, [self.values[name] for name in names])

    async def run_at_source(self, statement: str) -> StatementReply:
        """Take a statement that gives no rows."""
        self.statements.append(statement)
        return StatementReply()

    async def require(self, privilege: SourcePrivilege) -> None:
        """Do nothing: it has all of them."""
        del privilege


@dataclass(slots=True, kw_only=True)
class FakePort:
    """The parts that sessions share, before a `FakeSource`.

    Attributes:
        source: The server of its sessions.
        definitions: The binlogs; replaced as a whole where they change.
        attributions: Gets the plans of the sessions' groups.
        global_values: Values that SET GLOBAL gave to the binlogs' variables.
        is_set_up: True if the source was set up to be judged.
    """

    source: FakeSource
    definitions: tuple[Definition, ...]
    attributions: Attributions = field(default_factory=lambda: Attributions(None, Flavor.MARIADB))
    global_values: dict[str, str] = field(default_factory=dict)
    is_set_up: bool = True
    _parts: PortParts | None = None

    async def find_parts(self) -> PortParts | None:
        """Give the shared parts, made when the first session asks."""
        if not self.is_set_up:
            return None
        if self._parts is None:
            catalog = LiveCatalog(self.source)
            await catalog.start()
            self.attributions.begin(parse_position("0-1-10", "mariadb"))
            self._parts = PortParts(
                definitions=lambda: self.definitions,
                holds_all_rows=holds_all_rows(lambda: self.definitions, lambda: self.global_values),
                catalog=catalog,
                attributions=self.attributions,
                marker=self.source,
                global_values=lambda: self.global_values,
                set_global_values=self._set_global_values,
            )
        return self._parts

    def _set_global_values(self, values: object) -> None:
        assert isinstance(values, dict), "as it is told"
        self.global_values |= values

    async def stop(self) -> None:
        """End what was started."""
        if self._parts is not None:
            await self._parts.catalog.stop()


class Conversation:
    """A client that sends statements through a judge, as the gateway lets it.

    Attributes:
        client: Session at the source.
        sent: Texts that the source ran for the client, with binlane's own before them.

    Args:
        judge: Judges the client's statements.
        client: Session at the source of which the judge knows.
        source: Logs the groups.
    """

    def __init__(self, judge: Judge, client: FakeClient, source: FakeSource) -> None:
        self.judge = judge
        self.client = client
        self.source = source
        self.sent: list[str] = []

    async def verdict(self, *texts: str, is_prepared: bool = False) -> Verdict:
        """Have statements judged, at once or later."""
        statements = [ClientStatement(text, is_prepared=is_prepared) for text in texts]
        return self.judge.judge(statements) or await self.judge.judge_later(statements)

    async def run(self, text: str, reply: StatementReply | None = None) -> Verdict:
        """Send a statement, and have the source answer it if it gets there.

        Args:
            text: Text of the statement.
            reply: The source's answer; None for one changed row whose group is logged.
        """
        verdict = await self.verdict(text)
        if isinstance(verdict, RunVerdict):
            self.sent += [*verdict.before, verdict.text or text]
            await self.answer(self.wrote() if reply is None else reply)
        return verdict

    async def answer(self, *replies: StatementReply) -> int:
        """Have the source answer the command under way; gives how many more warnings the client has."""
        if len(replies) == 1 and not (replies[0].errno or replies[0].is_result_set):
            (reply,) = replies
            state = SessionState(
                variables=reply.tracked, database=reply.database, gtids=reply.gtids
            ).encode()
            counts = (reply.affected_rows, reply.insert_id, reply.status, reply.warnings)
            if self.judge.done_at_once((*counts, reply.info.encode(), state, 0)):
                return 0
        done = self.judge.done(replies)
        if done.then is not None:
            await done.then()
        return done.warnings

    def wrote(self, rows: int = 1, insert_id: int = 0) -> StatementReply:
        """The reply to a write whose group the source has logged."""
        return StatementReply(
            affected_rows=rows,
            insert_id=insert_id,
            info=f"Rows matched: {rows}  Changed: {rows}  Warnings: 0",
            tracked={"last_gtid": self.source.logged()},
        )
