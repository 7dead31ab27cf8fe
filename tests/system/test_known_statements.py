"""Statements that come again in a session: what is told of them is what would be told of first ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import pymysql
import pytest

from binlane.cli.main import main
from binlane.codec.types import EventType, Flavor
from binlane.gateway.handler import SessionContext
from binlane.port.attributions import Attributions
from binlane.port.lanes import LanePool
from binlane.port.live_catalog import LiveCatalog
from binlane.port.marks import Marker
from binlane.port.plan_bytes import encode_plans
from binlane.port.port_session import PortParts, PortSession
from binlane.positions import parse_position
from binlane.routing.plan import EncodedEvent, GroupPlan, Part, Text
from binlane.scope.definition import Definition
from binlane.scope.scope import Scope
from binlane.service.private_server import PrivateServer
from binlane.session.group_plans import PlannedSession
from binlane.sql.servers import LoggingMode
from tests.live_catalog import settings_of
from tests.recording_judge import JudgingPort
from tests.servers import ServerFactory, connect, execute

pytestmark = pytest.mark.system

_TABLES: Final = (
    "DROP DATABASE IF EXISTS known",
    "DROP DATABASE IF EXISTS beside",
    "CREATE DATABASE known",
    "CREATE DATABASE beside",
    "CREATE TABLE known.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40), n INT UNIQUE)",
    "CREATE TABLE known.p (id INT PRIMARY KEY, v VARCHAR(40))",
    "CREATE TABLE beside.p (id INT PRIMARY KEY, v VARCHAR(40))",
    "CREATE TABLE known.m (id INT PRIMARY KEY AUTO_INCREMENT, v INT) ENGINE=MyISAM",
    "INSERT INTO known.p VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO beside.p VALUES (1, 'a'), (2, 'b'), (3, 'c')",
)
_ENCODED_LEAST: Final = 20
_OFTEN: Final = (
    "INSERT INTO t (v) VALUES ('{text}')",
    "INSERT INTO t (v, n) VALUES ('{text}', {number})",
    "INSERT INTO p VALUES ({number}, '{text}')",
    "UPDATE p SET v = '{text}' WHERE id = {few}",
    "UPDATE p SET v = 'same' WHERE id = {few}",
    "UPDATE beside.p SET v = '{text}' WHERE id = {few}",
    "UPDATE t SET v = '{text}' WHERE id = {few}",
    "DELETE FROM t WHERE id = {number}",
    "SELECT v FROM p WHERE id = {few}",
    "SELECT v FROM nowhere WHERE id = {few}",
)
_SELDOM: Final = (
    "INSERT INTO m (v) VALUES ({number})",
    "INSERT IGNORE INTO t (v, n) VALUES ('{text}', {few})",
    "INSERT INTO t (v, n) VALUES ('{text}', {few}) ON DUPLICATE KEY UPDATE v = 'again'",
    "INSERT INTO t (v) VALUES ('{text}'), ('more')",
    "INSERT INTO t (v) SELECT v FROM p WHERE id = {few}",
    "UPDATE p SET v = LEFT(UUID(), 0) WHERE id = {few}",
    "SHOW WARNINGS",
    "UPDATE p SET v = LAST_INSERT_ID() WHERE id = {few}",
    "USE beside",
    "USE known",
    "SET SESSION sql_mode = ''",
    "SET SESSION sql_mode = 'ANSI_QUOTES'",
    "SET SESSION auto_increment_increment = {few}",
    "SET character_set_client = latin1",
    "SET character_set_client = utf8mb4",
    "ALTER TABLE known.t COMMENT = '{number}'",
    "SET SESSION binlog_format = MIXED",
    "SET SESSION binlog_format = STATEMENT",
)
_FOR_A_WHILE: Final = (
    ("SET timestamp = 1700000000", "SET timestamp = DEFAULT"),
    ("SET autocommit = 0", "SET autocommit = 1"),
    ("BEGIN", "COMMIT"),
    ("BEGIN", "ROLLBACK"),
    ("SET sql_log_bin = 0", "SET sql_log_bin = 1"),
    ("CREATE TEMPORARY TABLE temporary (a INT)", "DROP TEMPORARY TABLE temporary"),
)
_BY_OTHERS: Final = (
    "ALTER TABLE known.p COMMENT = '{number}'",
    "CREATE OR REPLACE VIEW known.w AS SELECT {number}",
)


@pytest.fixture(params=["mariadb", "mysql"])
def source(servers: ServerFactory, request: pytest.FixtureRequest) -> PrivateServer:
    start = servers.start if request.param == "mariadb" else servers.start_mysql
    server = start("source")
    assert main(["setup", "--quiet", server.url]) == 0
    return server


@dataclass(slots=True)
class _Heard:
    """What `Attributions` is told, without what differs from session to session.

    Attributes:
        told: Each call.
        encoded: In how many of them the plans came with their bytes.
    """

    told: list[object] = field(default_factory=list)
    encoded: int = 0


class _Listening(Attributions):
    """Takes down what it is told."""

    def __init__(self, flavor: Flavor) -> None:
        super().__init__(None, flavor)
        self.heard = _Heard()
        self._intended: dict[int, Sequence[GroupPlan]] = {}

    def intend(
        self, lane: int, number: int, plans: Sequence[GroupPlan], encoded: bytes | None = None
    ) -> None:
        """As of `Attributions`."""
        self._take(plans, encoded)
        self._intended[number] = plans
        self.heard.told.append(("intend", number, _comparable(plans)))
        super().intend(lane, number, plans, encoded)

    def done(
        self,
        lane: int,
        number: int,
        last: str | None,
        plans: Sequence[GroupPlan] | None = None,
        encoded: bytes | None = None,
    ) -> None:
        """As of `Attributions`."""
        if plans is not None:
            self._take(plans, encoded)
        final = self._intended.get(number) if plans is None else plans
        told = None if final is None else _comparable(final)
        self.heard.told.append(("done", number, last is None, told))
        super().done(lane, number, last, plans, encoded)

    def _take(self, plans: Sequence[GroupPlan], encoded: bytes | None) -> None:
        if encoded is not None:
            self.heard.encoded += 1
            assert encoded == encode_plans(plans)


def _comparable(plans: Sequence[GroupPlan]) -> list[object]:
    return [
        (
            plan.sections,
            {name: tuple(map(_without_session, parts)) for name, parts in plan.binlogs.items()},
            plan.bases,
            {name: end and _without_thread(end) for name, end in plan.ends.items()},
        )
        for plan in plans
    ]


def _without_session(part: Part) -> Part:
    if not isinstance(part, Text):
        return part
    return part._replace(
        events=tuple(map(_without_thread, part.events)), timestamp=bool(part.timestamp)
    )


def _without_thread(event: EncodedEvent) -> EncodedEvent:
    # Nor without the time since that to which the session set its clock.
    body = event.body[8:] if event.type_code == EventType.QUERY else event.body
    return event._replace(body=body)


def _definitions() -> tuple[Definition, ...]:
    everything, mode = Scope.everything(), LoggingMode.STATEMENT
    one = Definition(name="all", scope=everything, logging_mode=mode, log_id=1)
    return (
        one,
        replace(one, name="mixed", logging_mode=LoggingMode.MIXED, log_id=2),
        replace(one, name="rows", logging_mode=LoggingMode.ROW, log_id=3),
        replace(one, name="none", scope=Scope.nothing(), log_id=4),
    )


def _run(source: PrivateServer, statements: Sequence[tuple[bool, str]]) -> tuple[_Heard, list[Any]]:
    """Run statements through a port in this process, some of them beside it.

    Returns:
        What was told of them, and the answers.
    """
    execute(source, *_TABLES)
    ((version, server_id),) = execute(source, "SELECT VERSION(), @@GLOBAL.server_id")
    flavor = Flavor.MARIADB if "MariaDB" in version else Flavor.MYSQL
    position = {Flavor.MARIADB: "gtid_binlog_pos", Flavor.MYSQL: "gtid_executed"}[flavor]
    ((logged,),) = execute(source, f"SELECT @@GLOBAL.{position}")
    settings = settings_of(source)
    attributions, catalog = _Listening(flavor), LiveCatalog(settings)
    attributions.begin(parse_position(logged, flavor.value))
    definitions = _definitions()
    parts = PortParts(
        definitions=lambda: definitions,
        catalog=catalog,
        attributions=attributions,
        marker=Marker(settings, flavor),
        lanes=LanePool.of(flavor, int(server_id), attributions.is_clear),
    )

    async def find() -> PortParts:
        await catalog.start()
        return parts

    def judge(session: SessionContext) -> Any:
        return PortSession(session, find)

    answers: list[Any] = []
    with JudgingPort(source, cast("Any", judge)) as port, connect(source) as other:
        try:
            with port.connect(database="known", charset="utf8mb4") as client:
                for is_beside, statement in statements:
                    with (other if is_beside else client).cursor() as cursor:
                        answers.append(_answer(cursor, statement))
        finally:
            port.run(catalog.stop())
            parts.marker.close()
    return attributions.heard, answers


def _answer(cursor: Any, statement: str) -> object:
    try:
        cursor.execute(statement)
    except pymysql.MySQLError as error:
        return statement, error.args[0]
    return statement, cursor.rowcount, cursor.lastrowid, cursor.fetchall()


def _statements(numbers: random.Random, count: int) -> Iterator[tuple[bool, str]]:
    """Statements, and whether they run beside the port."""
    # A lane is entered outside of transactions alone.
    yield False, "INSERT INTO p VALUES (99, 'first')"
    end = ""
    for number in range(100, 100 + count):
        values = {
            "text": numbers.choice(("plain", "größer", "Ω", "it''s", "x" * 30, "")) + str(number),
            "number": number,
            "few": numbers.randrange(1, 4),
        }
        dice = numbers.random()
        if end and dice < 0.3:
            yield False, end
            end = ""
        elif not end and dice < 0.03:
            begin, end = numbers.choice(_FOR_A_WHILE)
            yield False, begin
        elif not end and dice < 0.05:
            yield True, numbers.choice(_BY_OTHERS).format(**values)
        elif dice < 0.12:
            yield False, numbers.choice(_SELDOM).format(**values)
        else:
            yield False, numbers.choice(_OFTEN).format(**values)


def test_what_is_told_of_statements_that_come_again(
    source: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = list(_statements(random.Random(1), 300))
    known, answers = _run(source, statements)
    with monkeypatch.context() as patch:
        patch.setattr(PlannedSession, "unchanging", lambda *_: None)
        first, answers_of_first = _run(source, statements)
    assert not first.encoded
    assert known.encoded > _ENCODED_LEAST
    for one, other in zip(answers, answers_of_first, strict=True):
        assert one == other
    for told, expected in zip(known.told, first.told, strict=True):
        assert told == expected

    # Once its table is another one, a write has to be looked at anew.
    insert = (False, "INSERT INTO t (v) VALUES ('a')")
    altered = (True, "ALTER TABLE known.t ADD COLUMN w INT")
    heard, _ = _run(source, [insert] * 5 + [altered] + [insert] * 5)
    intended = [told for told in heard.told if isinstance(told, tuple) and told[0] == "intend"]
    assert len(intended) == 10
    assert heard.encoded >= 10
