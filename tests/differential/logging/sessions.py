"""Sessions of statements that a server records and our session answers, and how the two differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from binlane.log.codec.types import Flavor
from binlane.statements.policy.refusals import Outcome
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from tests.differential.logging.recorder import Recorded
from tests.differential.logging.scripts import Script, Statement
from tests.logged_events import are_equal, comparable

VERSIONS: Final = {"mariadb": "mariadb:10.11.19", "mysql": "mysql:9.7.4"}
CONFIGURATION: Final = {
    "mariadb": "set global log_bin_trust_function_creators=1;\n",
    "mysql": (
        "set global log_bin_trust_function_creators=1;\n"
        "set global gtid_mode=OFF;\nset global enforce_gtid_consistency=OFF;\n"
    ),
}
# Refusals of the servers that our session must find itself; every other error is stated.
_REFUSALS: Final = frozenset(
    {
        *range(1661, 1669),
        1066,
        1068,
        1099,
        1100,
        1192,
        1223,
        1399,
        1559,
        1560,
        1568,
        1674,
        1679,
        1685,
        1686,
        1694,
        1695,
        1785,
        1786,
        1787,
        1792,
        1826,
        1844,
    }
    | {1304, 1305, 1619, 1766, 1901, 1907, 1970, 3106, 3199, 3537, 3733, 3745, 3746, 3748, 3756}
    | {3758, 3759, 3762, 3763, 3770, 3772, 3977, 3978, 3979, 3940}
    | {3108, 3766, *range(3813, 3817), *range(3820, 3823), 3837}
    | {4029, 4033, 4091, 4112, 4124, 6001, 6512, 6513}
)
_NO_TARGET: Final = 1109
"""Of DELETE; handlers that are not open and unknown tables of information_schema have it too."""
_ONLY_READ: Final = ("prepare", "explain", "show", "uninstall", "handler")
"""Of these no tables are opened here, and nothing says which plugins a server has."""
_ROWS: Final = ("insert", "replace", "update", "delete")
_COUNTED: Final = ("insert", "replace", "update", "delete", "load", "execute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where a session of ours first does something else than the server.

    Attributes:
        index: Of the statement; behind the last one at the end of the session.
        aspect: `error`, `notes`, `events`, `unanalysed`, `crash`.
        expected: What the server did.
        actual: What we say.
    """

    index: int
    aspect: str
    expected: object
    actual: object


def outcome(statement: Statement, recorded: Recorded) -> Outcome:
    """What happened, as a script would state it."""
    if recorded.error is not None:
        text = statement.sql.lower()
        is_target = recorded.error == _NO_TARGET and text.startswith(("delete", "create"))
        is_foreseen = recorded.error in _REFUSALS or is_target
        if is_foreseen and not text.startswith(_ONLY_READ):
            return Outcome()
        rows = statement.rows
        if rows is None:  # what is logged although it failed has changed something
            has_rows = bool(recorded.events) and not _is_sequence_alone(recorded)
            rows = int(has_rows and statement.sql.lower().startswith(_ROWS))
        return Outcome(error=recorded.error, rows=rows)
    if _gives_one_row(statement.sql):
        return Outcome(rows=recorded.affected)
    words = statement.sql.lower().split()
    is_counted = words[0] in _COUNTED or (words[0] == "create" and "select" in words)
    if is_counted and recorded.affected == 0:
        return Outcome(rows=0)
    return Outcome()


def _is_sequence_alone(recorded: Recorded) -> bool:
    """Whether a statement that failed has logged the row of a sequence and nothing else."""
    words = recorded.sql.lower()
    is_alone = [event.type for event in recorded.events].count("Table_map") == 1
    return is_alone and "nextval(" in words.replace(" ", "")


def _gives_one_row(sql: str) -> bool:
    """Whether the count of rows tells if the row was there already: it counts as two, or as none."""
    lower = sql.lower()
    return lower.startswith("insert into") and "on duplicate" in lower and "select" not in lower


def first_difference(
    server_name: str, script: Script, recorded: Sequence[Recorded]
) -> Difference | None:
    """Run a script through our session and compare statement by statement.

    Args:
        server_name: Flavor, or flavor and version as `mariadb:11.8.6`.
        script: The session.
        recorded: What the server did.
    """
    server = Server.parse(VERSIONS.get(server_name, server_name))
    catalog = SchemaCatalog(Flavor(server.flavor))
    catalog.load(CONFIGURATION[server.flavor] + _script(script.schema), version=server.version)
    session = Session(server=server, objects=catalog, database="d", errors=PredictedErrors())
    upserts = False
    for index, done in enumerate(recorded):
        try:
            if index < len(script.statements):
                statement = script.statements[index]
                lower = statement.sql.lower()
                upserts = upserts or "replace" in lower or "on duplicate" in lower
                result = session.execute(statement.sql, outcome(statement, done))
            else:
                result = session.disconnect()
        except Exception as error:  # noqa: BLE001 - a traceback is a difference too
            return Difference(
                index=index,
                aspect="crash",
                expected=None,
                actual=f"{type(error).__name__}: {error}",
            )
        for aspect, expected, actual in _aspects(done, result, upserts=upserts):
            if not _is_same(expected, actual):
                return Difference(index=index, aspect=aspect, expected=expected, actual=actual)
    return None


def _script(schema: Sequence[str]) -> str:
    return "DELIMITER $$\n" + "".join(f"{statement}$$\n" for statement in schema)


def _is_same(expected: object, actual: object) -> bool:
    if isinstance(expected, list) and isinstance(actual, list):
        return are_equal(expected, actual)
    return expected == actual


def _aspects(
    done: Recorded, result: StatementResult, *, upserts: bool
) -> Iterator[tuple[str, object, object]]:
    yield "unanalysed", None, result.unanalysed and result.unanalysed.reason
    error = result.error
    if error is not None and error.on_some_ways and done.error is None:
        error = None  # the data took another way
    yield "error", done.error, error and error.errno
    yield "notes", done.reasons, tuple(note.reason for note in result.notes if note.is_told)
    events = [event for binlog in result.binlogs.values() for event in binlog.events]
    yield (
        "events",
        comparable(done.events, upserts=upserts),
        comparable(events, upserts=upserts),
    )
