"""Package bodies of MariaDB: which routines and variables one has.

Source: MariaDB 10.11 and 11.8, sql/sql_yacc.yy: package_implementation_declare_section.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.oracle_programs import OracleBodies
from binlane.statements.sql.parser.programs import Bodies, Steps
from binlane.statements.sql.parser.types import read_type
from binlane.statements.sql.tokens import NAME_KINDS
from binlane.statements.sql.tree.expressions import Node
from binlane.statements.sql.tree.statements import Declaration, VariableDeclaration

_ROUTINES: Final = ("PROCEDURE", "FUNCTION")
_WORDS: Final = frozenset(
    (
        *("LANGUAGE", "SQL", "NOT", "DETERMINISTIC", "CONTAINS", "NO", "READS", "MODIFIES"),
        *("DATA", "SECURITY", "INVOKER", "DEFINER"),
    )
)
"""Words of a routine's characteristics before its body."""


class Package(NamedTuple):
    """Content of a package body: the texts of its routines, and the names of its variables."""

    routines: tuple[str, ...]
    variables: tuple[str, ...]


def read_package(bodies: Bodies) -> Steps[Package]:
    """Read a package body from AS on, or from what it declares first.

    Args:
        bodies: Reads the bodies of the session's sql_mode.
    """
    cursor = bodies.cursor
    routines: list[str] = []
    names: list[str] = []
    cursor.accept_any(("AS", "IS"))
    while cursor.word not in ("BEGIN", "END"):
        at = cursor.start
        if cursor.word in _ROUTINES:
            _skip_head(cursor)
            if cursor.word != ";":  # else its body comes later
                yield bodies.body()
                routines.append(cursor.text[at : cursor.end])
        else:
            cursor.accept("DECLARE")
            declaration: Declaration = yield bodies.declaration()
            if isinstance(declaration, VariableDeclaration):
                names += declaration.names
        cursor.expect_operator(";")
    start = cursor.start
    if cursor.word == "END" or not isinstance(bodies, OracleBodies):
        _: Node | None = (yield bodies.statement()) if cursor.word == "BEGIN" else None
        cursor.accept("END")
    else:
        cursor.expect("BEGIN")
        yield bodies.last_block(start)
    if cursor.kind in NAME_KINDS:
        cursor.advance()  # its name
    return Package(tuple(routines), tuple(names))


def _skip_head(cursor: Cursor) -> None:
    """Go behind a routine's name, parameters, type and characteristics."""
    cursor.advance()
    cursor.identifier()
    depth = 0
    while cursor.word == "(" or depth:
        depth += {"(": 1, ")": -1}.get(cursor.word, 0)
        if cursor.is_at_end:
            raise cursor.stop(")")
        cursor.advance()
    if cursor.accept_any(("RETURN", "RETURNS")):
        read_type(cursor)
    while cursor.word in _WORDS or cursor.word == "COMMENT":
        is_comment = cursor.advance().word == "COMMENT"
        if is_comment:
            cursor.string()
