"""What storage engines can be logged as: seed 002's table, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from binlane.errors import NotLoggableError


@dataclass(frozen=True, slots=True)
class Capability:
    """How a table, or a set of tables, can be logged.

    Attributes:
        is_row_capable: HA_BINLOG_ROW_CAPABLE.
        is_statement_capable: HA_BINLOG_STMT_CAPABLE.
    """

    is_row_capable: bool
    is_statement_capable: bool

    def __and__(self, other: Capability) -> Capability:
        """What both can."""
        return Capability(
            self.is_row_capable and other.is_row_capable,
            self.is_statement_capable and other.is_statement_capable,
        )


BOTH: Final = Capability(is_row_capable=True, is_statement_capable=True)
ROW_ONLY: Final = Capability(is_row_capable=True, is_statement_capable=False)
STATEMENT_ONLY: Final = Capability(is_row_capable=False, is_statement_capable=True)

# By the engine's name in SQL, in capitals; the comment is the handler's name in the seed.
ENGINES: Final[Mapping[str, Capability]] = MappingProxyType(
    {
        "NDBCLUSTER": ROW_ONLY,  # ha_ndbcluster
        "ARCHIVE": BOTH,  # ha_archive
        "BLACKHOLE": STATEMENT_ONLY,  # ha_blackhole
        "CSV": BOTH,  # ha_tina
        "EXAMPLE": ROW_ONLY,  # ha_example
        "FEDERATED": BOTH,  # ha_federated
        "MEMORY": BOTH,  # ha_heap
        "MYISAM": BOTH,  # ha_myisam
        "MRG_MYISAM": BOTH,  # ha_myisammrg
    }
)


def capability(engines: Iterable[str]) -> Capability:
    """How a set of tables can be logged: what all of their engines can.

    Args:
        engines: Names as in information_schema, in any case. No table at all can be logged as
            either.

    Raises:
        NotLoggableError: If an engine is not known.
    """
    result = BOTH
    for engine in engines:
        known = ENGINES.get(engine.upper())
        if known is None:
            raise NotLoggableError(
                f"it is not known how storage engine {engine} can be logged",
                hint=f"the known ones are {', '.join(sorted(ENGINES))}",
            )
        result &= known
    return result
