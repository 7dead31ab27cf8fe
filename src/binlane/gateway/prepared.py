"""A session's prepared statements, and what they are with their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.codec.packets.flags import Capability, Command
from binlane.gateway.judge import ClientStatement
from binlane.sql.servers import Dialect

LAST: Final = 0xFFFFFFFF
"""The id by which MariaDB's clients mean the statement that was prepared last."""


@dataclass(slots=True)
class Prepared:
    """A prepared statement.

    Attributes:
        text: As it was sent.
        parameter_count: How many values it takes.
        types: Of its values, as the client told them last; None before.
        long_data: Values that were sent before, by number.
    """

    text: str
    parameter_count: int
    types: Sequence[int] | None = None
    long_data: dict[int, bytearray] = field(default_factory=dict)


class PreparedStatements:
    """A session's prepared statements by their ids.

    Args:
        capabilities: What the client has agreed on.
    """

    def __init__(self, capabilities: Capability) -> None:
        self._capabilities = capabilities
        self._by_id: dict[int, Prepared] = {}
        self._last = LAST

    def clear(self) -> None:
        """Forget all: the session was reset."""
        self._by_id.clear()
        self._last = LAST

    def add(self, statement_id: int, text: str, parameter_count: int) -> None:
        """Be told of one."""
        self._by_id[statement_id] = Prepared(text, parameter_count)
        self._last = statement_id

    def add_none(self) -> None:
        """Be told that preparing failed."""
        self._last = LAST

    def add_long_data(self, statement_id: int, parameter: int, data: bytes) -> None:
        """Be told of a part of a value."""
        if (prepared := self._find(statement_id)) is not None:
            prepared.long_data.setdefault(parameter, bytearray()).extend(data)

    def reset(self, statement_id: int) -> None:
        """Forget the values that were sent before."""
        if (prepared := self._find(statement_id)) is not None:
            prepared.long_data.clear()

    def close(self, statement_id: int) -> None:
        """Forget one."""
        if statement_id == LAST:
            statement_id = self._last
        self._by_id.pop(statement_id, None)

    def executed(
        self, command: int, payload: bytes, dialect: Dialect
    ) -> tuple[ClientStatement, ...]:
        """What a COM_STMT_EXECUTE or COM_STMT_BULK_EXECUTE runs."""
        del dialect
        prepared = self._find(int.from_bytes(payload[1:5], "little"))
        if prepared is None:
            return (ClientStatement("", is_prepared=True, is_complete=False),)
        if command == Command.STMT_EXECUTE and not prepared.parameter_count:
            return (ClientStatement(prepared.text, is_prepared=True),)
        return (ClientStatement(prepared.text, is_prepared=True, is_complete=False),)

    def _find(self, statement_id: int) -> Prepared | None:
        return self._by_id.get(self._last if statement_id == LAST else statement_id)
