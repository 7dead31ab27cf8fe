"""One client's session through the port: judged before its statements run, followed after.

A session of the model (`session.Session`) goes along with the client's session on the source. What
the model refuses never reaches the source. What it lets pass is told again what came of it, and
what the model then says of the groups that the source wrote is given to `Attributions`.

Where model and source disagree on anything, the model is wrong: from there on nothing of the
transaction is planned, which makes rows of it, and the model begins anew behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.client.source_objects import Source, SourceSession
from binlane.codec.packets.flags import ServerStatus
from binlane.codec.types import Flavor
from binlane.errors import BinlaneError, StatementError
from binlane.gateway.handler import SessionContext
from binlane.gateway.judge import (
    NOTHING_LEFT,
    ClientStatement,
    Done,
    Pass,
    Refuse,
    Reply,
    Run,
    Verdict,
)
from binlane.policy.refusals import Outcome, Refusal
from binlane.port.attributions import Attributions
from binlane.port.lanes import Lane, LanePool
from binlane.port.live_catalog import LiveCatalog
from binlane.port.statement_context import ContextReader, StatementContext, complete
from binlane.routing.plan import GroupPlan, Part, Rows, Text, basis_of
from binlane.scope.definition import Definition
from binlane.session.group_plans import (
    DraftPart,
    GroupDraft,
    Planned,
    PlannedSession,
    RowsOf,
)
from binlane.session.report import StatementResult
from binlane.session.session import Session
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.facts import DDL_KINDS, WRITING_KINDS, StatementFacts, StatementKind
from binlane.sql.reading import read

logger = logging.getLogger(__name__)

_READS: Final = frozenset((StatementKind.SELECT, StatementKind.SESSION, StatementKind.EMPTY))
"""What a session may begin with that the model need not know of."""
_OWN: Final = ("ER_BINLOG_", "BINLANE_", "ER_INSIDE_TRANSACTION_PREVENTS_")
"""How the symbols of refusals begin that are binlane's to give: the source logs rows, whatever the
binlogs have, and would let such a statement pass."""
_OWN_SYMBOLS: Final = frozenset(
    (
        "ER_TEMP_TABLE_PREVENTS_SWITCH_OUT_OF_RBR",
        "ER_TEMP_TABLE_PREVENTS_SWITCH_SESSION_BINLOG_FORMAT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_FORMAT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_DIRECT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_SQL_LOG_BIN",
    )
)
_DIRTYING: Final = frozenset(
    (
        *(StatementKind.SET, StatementKind.CALL, StatementKind.COMPOUND, StatementKind.EXECUTE),
        *(StatementKind.EXECUTE_IMMEDIATE, StatementKind.DO, StatementKind.SESSION),
    )
)
"""What may change the values that belong to later statements' texts."""


def is_own(refusal: Refusal) -> bool:
    """Whether binlane refuses, and not the source, which gets to say its own errors itself."""
    return refusal.symbol in _OWN_SYMBOLS or refusal.symbol.startswith(_OWN)
