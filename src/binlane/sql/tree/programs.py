"""Programs: blocks, conditions, loops, cursors and handlers of bodies.

A statement in a body is any node of `statements` and `definitions`, or one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from binlane.sql.tree.expressions import DataType, Expression, Name, Query, UserVariable
from binlane.sql.tree.node import Node


@dataclass(slots=True, eq=False)
class VariableDeclaration(Node):
    """DECLARE of one or more variables; `default` is None where it is NULL by omission.

    Attributes:
        names: As written, without quotes.
        type: Theirs.
        default: Behind DEFAULT.
    """

    names: tuple[str, ...]
    type: DataType
    default: Expression | None = None


@dataclass(slots=True, eq=False)
class ConditionDeclaration(Node):
    """DECLARE … CONDITION FOR; `value` as handlers have it."""

    name: str
    value: str


@dataclass(slots=True, eq=False)
class CursorDeclaration(Node):
    """DECLARE … CURSOR FOR; parameters (MariaDB) by name."""

    name: str
    query: Query
    parameters: tuple[str, ...] = ()


class HandlerAction(Enum):
    """What follows a handler's statement."""

    CONTINUE = "continue"
    EXIT = "exit"


@dataclass(slots=True, eq=False)
class HandlerDeclaration(Node):
    """DECLARE … HANDLER FOR.

    Attributes:
        action: CONTINUE or EXIT.
        conditions: `NOT FOUND`, `SQLEXCEPTION`, `SQLWARNING`, `SQLSTATE 23000`, an error number,
            or the name of a condition as written.
        statement: What it does.
    """

    action: HandlerAction
    conditions: tuple[str, ...]
    statement: Node


Declaration = VariableDeclaration | ConditionDeclaration | CursorDeclaration | HandlerDeclaration


@dataclass(slots=True, eq=False)
class Block(Node):
    """BEGIN … END; `label` is empty without one, as everywhere here."""

    declarations: tuple[Declaration, ...]
    statements: tuple[Node, ...]
    label: str = ""


@dataclass(slots=True, eq=False)
class Branch(Node):
    """What is done if `condition` holds; of a CASE with an operand: if it equals `condition`."""

    condition: Expression
    statements: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class If(Node):
    """IF, with its ELSEIFs as branches."""

    branches: tuple[Branch, ...]
    otherwise: tuple[Node, ...] = ()


@dataclass(slots=True, eq=False)
class CaseStatement(Node):
    """CASE; without ELSE (`otherwise` is None) it is an error if no branch is taken."""

    operand: Expression | None
    branches: tuple[Branch, ...]
    otherwise: tuple[Node, ...] | None = None


@dataclass(slots=True, eq=False)
class Loop(Node):
    """LOOP, without an end of its own."""

    statements: tuple[Node, ...]
    label: str = ""


@dataclass(slots=True, eq=False)
class While(Node):
    """WHILE: the condition is asked before each round."""

    condition: Expression
    statements: tuple[Node, ...]
    label: str = ""


@dataclass(slots=True, eq=False)
class Repeat(Node):
    """REPEAT: the condition that ends it is asked after each round."""

    statements: tuple[Node, ...]
    condition: Expression
    label: str = ""


@dataclass(slots=True, eq=False)
class ForRange(Node):
    """FOR variable IN [REVERSE] lower..upper (MariaDB)."""

    variable: str
    lower: Expression
    upper: Expression
    is_reverse: bool
    statements: tuple[Node, ...]
    label: str = ""


@dataclass(slots=True, eq=False)
class ForRows(Node):
    """FOR record IN a cursor, with its arguments, or in a query (MariaDB)."""

    variable: str
    cursor: str
    query: Query | None
    arguments: tuple[Expression, ...]
    statements: tuple[Node, ...]
    label: str = ""


@dataclass(slots=True, eq=False)
class Return(Node):
    """RETURN; a procedure of MariaDB's sql_mode ORACLE returns no value."""

    value: Expression | None = None


@dataclass(slots=True, eq=False)
class Leave(Node):
    """LEAVE a block or loop."""

    label: str


@dataclass(slots=True, eq=False)
class Iterate(Node):
    """ITERATE a loop."""

    label: str


@dataclass(slots=True, eq=False)
class Open(Node):
    """OPEN a cursor."""

    cursor: str
    arguments: tuple[Expression, ...] = ()


@dataclass(slots=True, eq=False)
class Fetch(Node):
    """FETCH a cursor's next row into variables.

    Without a cursor's name it is FETCH GROUP NEXT ROW of an aggregate function (MariaDB).
    """

    cursor: str
    variables: tuple[Name | UserVariable, ...]


@dataclass(slots=True, eq=False)
class Close(Node):
    """CLOSE a cursor."""

    cursor: str


PROGRAMS = (
    Block,
    If,
    CaseStatement,
    Loop,
    While,
    Repeat,
    ForRange,
    ForRows,
    Return,
    Leave,
    Iterate,
    Open,
    Fetch,
    Close,
)
"""What stands in bodies alone; MariaDB takes the compound ones as statements, too."""
