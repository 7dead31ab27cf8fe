"""Answers of binlane to what replicas, binlog tools and clients ask in a session."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from binlane.errors import StatementError
from binlane.live.gateway.answers import Answer, HandOn, OkAnswer, RowsAnswer
from binlane.live.gateway.handler import Handler, HandlerSession
from binlane.live.gateway.relay import Relay
from binlane.live.gateway.relay_questions import StatementQuestion
from binlane.live.gateway.replica_statements import (
    CONSTANTS,
    OF_SEMI_SYNC,
    OWN,
    SNAPSHOT,
    Asked,
    BinlogFact,
    BinlogReads,
    GtidPositionAt,
    Kill,
    ReplicaStatement,
    ReplicaVariable,
    SetVariables,
    Shows,
    fact_named,
    recognise,
)
from binlane.log.codec.format import flavor_of
from binlane.log.codec.packets.commands import RegisterSlave
from binlane.log.codec.packets.results import Cell, ColumnDefinition
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import quote
from binlane.positions import FilePosition
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import tokenise

_UNKNOWN_SYSTEM_VARIABLE: Final = 1193
_NOT_PREPARED: Final = 1295
_HIDDEN: Final = frozenset(fact.value for fact in OF_SEMI_SYNC)

_SHOW: Final = re.compile(r"\s*SHOW\b", re.IGNORECASE)
_VALUES: Final[Mapping[int, str]] = {
    ColumnType.LONGLONG: "CAST(0 AS SIGNED)",
    ColumnType.DOUBLE: "0e0",
}


def _not_prepared() -> StatementError:
    return StatementError(
        "This command is not supported in the prepared statement protocol yet",
        errno=_NOT_PREPARED,
        sqlstate="HY000",
        hint="send it as text: binlane answers it",
    )


def _stand_in(heads: Sequence[ColumnDefinition]) -> str:
    """Give the statement that the source prepares for the id of a statement that binlane answers.

    Args:
        heads: Columns of the answer; empty where they are not known. Clients then take them from the result
            of an execution.
    """
    values = (_VALUES.get(one.type_code, "''") for one in heads)
    columns = [f"{value} AS {quote(one.name)}" for value, one in zip(values, heads, strict=True)]
    return f"SELECT {', '.join(columns)}" if columns else "DO 0"


class StatementAnswers:
    """Answers the statements of one session.

    Args:
        session: Has the statements, and asks the source.
        handler: Knows the binlogs and their state.
        relay: The session's machine, whose judge knows variables that were kept from the source.
    """

    def __init__(self, session: HandlerSession, handler: Handler, relay: Relay) -> None:
        self._session = session
        self._handler = handler
        self._relay = relay

    @property
    def _flavor(self) -> Flavor:
        return flavor_of(self._session.server_version)

    async def answer(self, question: StatementQuestion | RegisterSlave) -> Answer | HandOn | None:
        """Answer a statement, or let a replica register; None where the source is to answer.

        Raises:
            StatementError: To be told to the client.
            PeerError: If the source goes away.
        """
        if isinstance(question, RegisterSlave):
            await self._handler.register(self._session)
            return OkAnswer()
        statement = recognise(question.text, self._flavor)
        if question.is_prepared:
            return await self._prepared_as(question.text, statement)
        answer = await self._answer_recognised(question.text, statement)
        if question.is_executed and (answer is None or isinstance(answer, HandOn)):
            raise _not_prepared()  # the source has another one in its place
        return answer

    async def _prepared_as(self, text: str, statement: ReplicaStatement | None) -> HandOn | None:
        """Give the statement that the source is to prepare; None for the given one, which it answers, too.

        Raises:
            StatementError: Error 1295 where binlane would have to answer, and cannot; clients then send the
            statement as text.
        """
        if isinstance(statement, BinlogReads):
            if any(not isinstance(place.what, ReplicaVariable) for place in statement.places):
                raise _not_prepared()
            return None
        filled = _with_numbers(text, self._flavor)
        if isinstance(statement, Shows):
            is_ours = statement.is_exact
        else:
            is_ours = statement is None and await self._handler.answers(self._session, filled)
        if not is_ours:
            return None
        if not self._relay.is_judged or filled != text:
            raise _not_prepared()
        # The servers tell the columns of SHOW before it is executed.
        shown = await self._answer_recognised(text, statement) if _SHOW.match(text) else None
        return HandOn(_stand_in(shown.heads if isinstance(shown, RowsAnswer) else ()))

    async def _answer_recognised(
        self, text: str, statement: ReplicaStatement | None
    ) -> Answer | HandOn | None:
        if statement is None:
            return await self._handler.answer(self._session, text)
        return await self._answer_replica(statement)

    async def _answer_replica(self, statement: ReplicaStatement) -> Answer | HandOn | None:
        if isinstance(statement, SetVariables):
            self._session.variables.update(statement.values)
            return OkAnswer() if statement.is_all else None
        if isinstance(statement, Kill):
            await self._session.run_at_source(statement.text)
            self._handler.killed(statement.thread_id)
            return OkAnswer()
        if isinstance(statement, Shows):
            return await self._show(statement)
        values: dict[Asked, str | None] = {}
        for what in dict.fromkeys(place.what for place in statement.places):
            values |= await self._value(what)
        text = statement.with_values(values)
        return None if text is None else HandOn(text)

    async def _value(self, what: Asked) -> dict[Asked, str | None]:
        """Find the value that is asked for; empty where the source is to answer."""
        if isinstance(what, ReplicaVariable):
            has_value = what.name in self._session.variables
            return {what: self._session.variables[what.name]} if has_value else {}
        if isinstance(what, GtidPositionAt):
            done = await self._handler.gtid_position_at(self._session, what.place)
            return {} if done is None else {what: str(done)}
        if self._flavor is Flavor.MYSQL and what in OF_SEMI_SYNC:
            raise StatementError(
                f"Unknown system variable '{what.value}'",
                errno=_UNKNOWN_SYSTEM_VARIABLE,
                sqlstate="HY000",
            )
        value = await self._fact(what)
        return {} if value is None else {what: value}

    async def _show(self, statement: Shows) -> Answer:
        """The rows of SHOW VARIABLES or SHOW STATUS as the source and the judge have them."""
        result = await self._session.query_source(statement.text)
        rows = (await self._relay.judge.shown(statement.text, result)).rows
        told: dict[str, str] = {}
        for name in statement.names.intersection(_text(row[0]).lower() for row in rows):
            fact = fact_named(name, self._flavor)
            value = None if fact is None else await self._fact(fact, is_asked=not statement.is_all)
            if value is not None:
                told[name] = value
        for own in await self._own_rows(statement):
            names = (_text(row[0]).encode() for row in rows)
            place = next((at for at, name in enumerate(names) if name > own[0]), len(rows))
            rows = [*rows[:place], own, *rows[place:]]
        if statement.names.issuperset(SNAPSHOT):
            status = {_text(row[0]).lower(): _text(row[-1]) for row in rows}
            try:
                told |= await self._snapshot(status)
            except StatementError:
                if not statement.is_all:
                    raise
                told |= dict.fromkeys(SNAPSHOT, "")
        shown: list[Sequence[Cell]] = []
        for row in rows:
            name = _text(row[0]).lower()
            if name not in _HIDDEN:
                shown.append((*row[:-1], told[name].encode()) if name in told else row)
        return RowsAnswer(result.heads, shown)

    async def _own_rows(self, statement: Shows) -> list[tuple[bytes, bytes]]:
        """Rows of variables that no source has; the source evaluates a condition on them."""
        found: list[tuple[bytes, bytes]] = []
        for fact in sorted(OWN, key=lambda one: one.value):
            value = await self._fact(fact) if fact.value in statement.names else None
            if value is None:
                continue
            if statement.condition:
                columns = f"'{fact.value}' AS Variable_name, '{value}' AS Value"
                text = f"SELECT 1 FROM (SELECT {columns}) AS variables {statement.condition}"  # noqa: S608  # the client's own, in its session
                if not (await self._session.query_source(text)).rows:
                    continue
            found.append((fact.value.encode(), value.encode()))
        return found

    async def _snapshot(self, status: Mapping[str, str]) -> dict[str, str]:
        """Translate the consistent snapshot in the source's status into the binlog's position."""
        file, position = (status.get(name, "") for name in SNAPSHOT)
        if not (file and position.isdigit()):
            return {}
        place = await self._handler.snapshot(self._session, FilePosition(file, int(position)))
        return (
            {}
            if place is None
            else dict(zip(SNAPSHOT, (place.file, str(place.position)), strict=True))
        )

    async def _fact(self, fact: BinlogFact, *, is_asked: bool = True) -> str | None:
        """Find the value of a fact; None where the source is to answer.

        Args:
            fact: The fact whose value is wanted.
            is_asked: False where all variables are shown: a position is not waited for then.
        """
        if fact in CONSTANTS:
            return CONSTANTS[fact]
        if fact is BinlogFact.TABLES_INFO:
            return "ON" if self._handler.has_tables_info else "OFF"
        if fact is BinlogFact.FORMAT:
            return await self._handler.binlog_format(self._session)
        if fact is BinlogFact.GTID_PURGED:
            position = await self._handler.gtid_purged(self._session)
        elif is_asked:
            position = await self._handler.gtid_position(self._session)
        else:
            position = await self._handler.gtid_position_now(self._session)
        return None if position is None else str(position)


def _with_numbers(text: str, flavor: Flavor) -> str:
    """A statement that is to be prepared, with numbers in the places of its values."""
    try:
        tokens = list(tokenise(text, Dialect(flavor=flavor.value)))
    except StatementError:
        return text
    places = [token.offset for token in tokens if token.text == "?"]
    for place in reversed(places):
        text = f"{text[:place]}1{text[place + 1 :]}"
    return text


def _text(cell: Cell) -> str:
    """A cell of a name or a number as text."""
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell or "")
