"""Text result sets as servers send them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from binlane.log.codec.packets.flags import (
    NO_EXTENSIONS,
    Capability,
    ExtendedCapability,
    ServerStatus,
)
from binlane.log.codec.packets.results import (
    Cell,
    ColumnDefinition,
    encode_end_of_rows,
    encode_heads,
    encode_row,
)


def encode_result_set(
    columns: Sequence[ColumnDefinition],
    rows: Iterable[Sequence[Cell]],
    *,
    capabilities: Capability,
    extended: ExtendedCapability = NO_EXTENSIONS,
    status: ServerStatus = ServerStatus.AUTOCOMMIT,
) -> list[bytes]:
    """The payloads of a result set in order; arguments as `encode_heads`, `rows` one cell a column."""
    return [
        *encode_heads(columns, capabilities=capabilities, extended=extended, status=status),
        *map(encode_row, rows),
        encode_end_of_rows(capabilities=capabilities, status=status),
    ]
