"""What a session through a port in this process tells `Attributions`, and what its client is answered."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import pymysql

from binlane.errors import StatementError
from binlane.live.gateway.handler import HandlerSession
from binlane.live.port.attribution_messages import AttributionListener, AttributionSender
from binlane.live.port.attributions import Attributions
from binlane.live.port.catalog_connections import CatalogConnections
from binlane.live.port.live_catalog import LiveCatalog
from binlane.live.port.port_parts import PortParts
from binlane.live.port.port_session import PortSession
from binlane.live.port.source_marks import Marker
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.execution import Execution
from binlane.log.codec.packets.replies import ErrPacket, is_error
from binlane.log.codec.types import ColumnType, EventType, Flavor
from binlane.positions import parse_position
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, Part, TextPart
from binlane.statements.session.plan_bytes import EncodedPlans, encode_plans
from binlane.statements.sql.servers import LoggingMode
from tests.live_catalog import settings_of
from tests.raw_client import RawClient
from tests.recording_judge import JudgingPort
from tests.servers import connect, execute


@dataclass(slots=True)
class Heard:
    """What `Attributions` is told, without what differs from session to session.

    Attributes:
        told: Each call.
        encoded: In how many of them the plans came with their bytes.
        by_kernel: How many intentions came that no session has said itself.
    """

    told: list[tuple[object, ...]] = field(default_factory=list)
    encoded: int = 0
    by_kernel: int = 0


class _Listening(Attributions):
    """Takes down what it is told."""

    def __init__(self, flavor: Flavor) -> None:
        super().__init__(None, flavor)
        self.heard = Heard()
        self._intended: dict[int, Sequence[GroupPlan]] = {}
        self._numbers: dict[int, int] = {}

    def _named(self, number: int) -> int:
        # Reads that pass unseen have no numbers.
        return self._numbers.setdefault(number, len(self._numbers))

    def intend(
        self,
        thread_id: int,
        number: int,
        plans: Sequence[GroupPlan],
        *,
        is_split: bool = False,
        is_for_all: bool = False,
        is_outdated: bool = False,
    ) -> None:
        """As of `Attributions`."""
        self._take(plans)
        self._intended[number] = plans
        self.heard.told.append(("intend", self._named(number), _comparable(plans, thread_id)))
        super().intend(
            *(thread_id, number, plans),
            is_split=is_split,
            is_for_all=is_for_all,
            is_outdated=is_outdated,
        )

    def done(
        self,
        thread_id: int,
        number: int,
        last: str | None,
        plans: Sequence[GroupPlan] | None = None,
        *,
        is_bound: bool = False,
    ) -> None:
        """As of `Attributions`."""
        if plans is not None:
            self._take(plans)
        final = self._intended.get(number) if plans is None else plans
        told = None if final is None else _comparable(final, thread_id)
        self.heard.told.append(("done", self._named(number), last is None, told))
        super().done(thread_id, number, last, plans, is_bound=is_bound)

    def _take(self, plans: Sequence[GroupPlan]) -> None:
        if isinstance(plans, EncodedPlans):
            self.heard.encoded += 1
            assert plans.encoded == encode_plans(list(plans))


class _Sender(AttributionSender):
    """Says what sessions have said themselves, and counts it."""

    def __init__(self, connection: socket.socket, heard: Heard) -> None:
        super().__init__(connection, lambda call: asyncio.get_running_loop().call_soon(call))
        self.heard = heard

    def intend(self, *args: Any, **kwargs: Any) -> None:
        """As of `AttributionSender`."""
        self.heard.by_kernel -= 1
        super().intend(*args, **kwargs)


def _comparable(plans: Sequence[GroupPlan], thread_id: int) -> list[object]:
    return [
        (
            plan.sections,
            {
                name: tuple(_without_session(part, thread_id) for part in parts)
                for name, parts in plan.binlogs.items()
            },
            plan.bases,
            {name: end and _without_session(end, thread_id) for name, end in plan.ends.items()},
        )
        for plan in plans
    ]


def _without_session(part: Part, thread_id: int) -> Part:
    if not isinstance(part, TextPart):
        return part
    events = tuple(_without_thread(event, thread_id) for event in part.events)
    return part._replace(events=events, timestamp=bool(part.timestamp))


def _without_thread(event: EncodedEvent, thread_id: int) -> EncodedEvent:
    """An event that says whether it is of the session's thread, not of which one."""
    if event.type_code != EventType.QUERY:
        return event
    is_of_session = event.body[:4] == thread_id.to_bytes(4, "little")
    # Nor without the time since that to which the session set its clock.
    return event._replace(body=bytes((is_of_session,)) + event.body[8:])


def logging_everything(mode: LoggingMode) -> Definition:
    """A binlog of a format that logs everything."""
    return Definition(name="all", scope=Scope.everything(), logging_mode=mode, log_id=1)


def _definitions() -> tuple[Definition, ...]:
    one = logging_everything(LoggingMode.STATEMENT)
    return (
        one,
        replace(one, name="mixed", logging_mode=LoggingMode.MIXED, log_id=2),
        replace(one, name="rows", logging_mode=LoggingMode.ROW, log_id=3),
        replace(one, name="none", scope=Scope.nothing(), log_id=4),
    )


@contextmanager
def judging(
    source: PrivateServer,
    definitions: tuple[Definition, ...] | None = None,
    *,
    by_messages: bool = False,
) -> Iterator[tuple[JudgingPort, PortParts]]:
    """A port in this process, and what its sessions share.

    Args:
        source: Is prepared for the port, or all goes as rows.
        definitions: The binlogs; None for one of each format, and one that logs nothing.
        by_messages: Sessions say of their groups as those of a worker do.
    """
    ((version,),) = execute(source, "SELECT VERSION()")
    flavor = Flavor.MARIADB if "MariaDB" in version else Flavor.MYSQL
    position = {Flavor.MARIADB: "gtid_binlog_pos", Flavor.MYSQL: "gtid_executed"}[flavor]
    ((logged,),) = execute(source, f"SELECT @@GLOBAL.{position}")
    settings = settings_of(source)
    attributions, catalog = _Listening(flavor), LiveCatalog(CatalogConnections(settings))
    attributions.begin(parse_position(logged, flavor.value))
    definitions = definitions or _definitions()
    heard, listener = attributions.heard, AttributionListener(attributions)
    said, saying = socket.socketpair()
    listener.add(said)
    parts = PortParts(
        definitions=lambda: definitions,
        catalog=catalog,
        attributions=_Sender(saying, heard) if by_messages else attributions,
        marker=Marker(settings, flavor),
        program_errors=PredictedErrors,
    )

    has_begun = False

    async def find() -> PortParts:
        nonlocal has_begun
        if not has_begun:
            has_begun = True
            await catalog.start()
        return parts

    def judge(session: HandlerSession) -> Any:
        return PortSession(session, find)

    with JudgingPort(source, cast("Any", judge)) as port:
        try:
            yield port, parts
        finally:
            port.run(catalog.stop())
            parts.marker.close()
            # Behind what was held back when the clients went.
            listener.hear()
            heard.by_kernel += sum(told[0] == "intend" for told in heard.told)
            listener.close()
            saying.close()


def run_judged(
    source: PrivateServer,
    database: str,
    statements: Sequence[tuple[bool, str]],
    definitions: tuple[Definition, ...] | None = None,
    *,
    by_messages: bool = False,
) -> tuple[Heard, list[Any]]:
    """Run statements in one session through a port, some of them beside it.

    Args:
        source: Is prepared for the port.
        database: The session's.
        statements: Whether it runs beside the port, and its text.
        definitions: The binlogs, as of `judging`.
        by_messages: As of `judging`.

    Returns:
        What was told of them, and the answers.
    """
    answers: list[Any] = []
    with (
        judging(source, definitions, by_messages=by_messages) as (port, parts),
        connect(source) as other,
        port.connect(database=database, charset="utf8mb4") as client,
    ):
        for is_beside, statement in statements:
            with (other if is_beside else client).cursor() as cursor:
                answers.append(_answer(cursor, statement))
    assert isinstance(parts.attributions, _Listening | _Sender), "it was made here"
    return parts.attributions.heard, answers


def _answer(cursor: Any, statement: str) -> object:
    try:
        cursor.execute(statement)
    except pymysql.MySQLError as error:
        return statement, error.args[0]
    return statement, cursor.rowcount, cursor.lastrowid, cursor.fetchall()


def run_prepared(
    source: PrivateServer,
    database: str,
    statements: Sequence[tuple[bool, str]],
    definitions: tuple[Definition, ...] | None = None,
    *,
    by_messages: bool = False,
) -> tuple[Heard, list[Any]]:
    """Do as `run_judged`, with all that has literals as a prepared statement with their values."""
    answers: list[Any] = []
    with (
        judging(source, definitions, by_messages=by_messages) as (port, parts),
        connect(source) as other,
        RawClient(port.port, database=database) as client,
    ):
        client.query("SET autocommit = 1")
        prepared: dict[str, int] = {}
        for is_beside, statement in statements:
            if is_beside:
                with other.cursor() as cursor:
                    cursor.execute(statement)
            else:
                answers.append((statement, _executed(client, prepared, statement)))
    assert isinstance(parts.attributions, _Listening | _Sender), "it was made here"
    return parts.attributions.heard, answers


_LITERAL: Final = re.compile(r"'([^']*)'|\b([0-9]+)\b")


def _executed(client: RawClient, prepared: dict[str, int], statement: str) -> object:
    """Execute a statement whose literals are values; the number of its error, or the packets of its reply."""
    text, found = _LITERAL.sub("?", statement), list(_LITERAL.finditer(statement))
    try:
        if found and text not in prepared:
            prepared[text] = client.prepare(text)
    except StatementError as error:
        return error.errno
    payload = encode_query(statement)
    if found:
        types = [ColumnType.LONGLONG if one[2] else ColumnType.VAR_STRING for one in found]
        values = [int(one[2]) if one[2] else one[1].encode() for one in found]
        execution = Execution(statement_id=prepared[text], types=types, values=values)
        payload = execution.encode()
    packets = client.say(payload)
    return ErrPacket.decode(packets[-1]).errno if is_error(packets[-1]) else packets
