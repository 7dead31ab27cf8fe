"""The bodies of routines, triggers and events as trees of statements: values only.

`compound.read_program` makes them. SQL statements and expressions in a body stay text, with their
place: `analysis.read` and `analysis.read_expression` say what they are about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Final

from binlane.sql.effects import StatementKind


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text.

    Attributes:
        text: It, as it stands there.
        offset: Where it begins, in characters from 0.
    """

    text: str
    offset: int

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.offset + len(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainStatement:
    """An SQL statement that stands outside of routines too: INSERT, SELECT … INTO, SET, CALL.

    GET DIAGNOSTICS is one too. `kind` is what its first words say.
    """

    sql: Span
    kind: StatementKind


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableDeclaration:
    """DECLARE of one or more variables; `default` is None where it is NULL by omission.

    Attributes:
        names: As written, without quotes.
        type_text: Such as `VARCHAR(20) CHARACTER SET latin1`, `TYPE OF t.a`.
        default: Behind DEFAULT.
    """

    names: tuple[str, ...]
    type_text: str
    default: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionDeclaration:
    """DECLARE … CONDITION FOR; `value` as handlers have it."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorDeclaration:
    """DECLARE … CURSOR FOR; parameters (MariaDB) by name."""

    name: str
    query: Span
    parameters: tuple[str, ...] = ()


class HandlerAction(Enum):
    """What follows a handler's statement."""

    CONTINUE = "continue"
    EXIT = "exit"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerDeclaration:
    """DECLARE … HANDLER FOR.

    Attributes:
        action: CONTINUE or EXIT.
        conditions: `NOT FOUND`, `SQLEXCEPTION`, `SQLWARNING`, `SQLSTATE 23000`, an error number,
            or the name of a condition as written.
        statement: What it does.
    """

    action: HandlerAction
    conditions: tuple[str, ...]
    statement: BodyStatement


Declaration = VariableDeclaration | ConditionDeclaration | CursorDeclaration | HandlerDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """BEGIN … END; `label` is empty without one, as everywhere here."""

    declarations: tuple[Declaration, ...]
    statements: tuple[BodyStatement, ...]
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """What is done if `condition` holds; of a CASE with an operand: if it equals `condition`."""

    condition: Span
    statements: tuple[BodyStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class If:
    """IF, with its ELSEIFs as branches."""

    branches: tuple[Branch, ...]
    otherwise: tuple[BodyStatement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """CASE; without ELSE (`otherwise` is None) it is an error if no branch is taken."""

    operand: Span | None
    branches: tuple[Branch, ...]
    otherwise: tuple[BodyStatement, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """LOOP, without an end of its own."""

    statements: tuple[BodyStatement, ...]
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class While:
    """WHILE: the condition is asked before each round."""

    condition: Span
    statements: tuple[BodyStatement, ...]
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """REPEAT: the condition that ends it is asked after each round."""

    statements: tuple[BodyStatement, ...]
    condition: Span
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForRange:
    """FOR variable IN [REVERSE] lower..upper (MariaDB)."""

    variable: str
    lower: Span
    upper: Span
    is_reverse: bool
    statements: tuple[BodyStatement, ...]
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForRows:
    """FOR record IN a cursor, with its arguments, or in a query (MariaDB)."""

    variable: str
    cursor: str
    query: Span | None
    arguments: tuple[Span, ...]
    statements: tuple[BodyStatement, ...]
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """RETURN; a procedure of MariaDB's sql_mode ORACLE returns no value."""

    value: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """LEAVE a block or loop."""

    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Iterate:
    """ITERATE a loop."""

    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """OPEN a cursor."""

    cursor: str
    arguments: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """FETCH a cursor's next row into variables.

    Without a cursor's name it is FETCH GROUP NEXT ROW of an aggregate function (MariaDB).
    """

    cursor: str
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """CLOSE a cursor."""

    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """SIGNAL or RESIGNAL.

    Attributes:
        condition: `SQLSTATE 45000`, a condition's name, or empty for a bare RESIGNAL.
        items: What SET assigns, names in capitals, with the texts of the values.
        is_again: RESIGNAL.
    """

    condition: str
    items: tuple[tuple[str, Span], ...] = ()
    is_again: bool = False


BodyStatement = (
    PlainStatement
    | Block
    | If
    | Case
    | Loop
    | While
    | Repeat
    | ForRange
    | ForRows
    | Return
    | Leave
    | Iterate
    | Open
    | Fetch
    | Close
    | Signal
)


class SpanKind(Enum):
    """What a text in a body is."""

    STATEMENT = "statement"
    EXPRESSION = "expression"
    QUERY = "query"
    """Of a cursor, or of a FOR loop."""


_SPAN_KINDS: Final = {"sql": SpanKind.STATEMENT, "query": SpanKind.QUERY}
"""By the name of the attribute; the others are expressions."""


def spans(statement: BodyStatement) -> Iterator[tuple[SpanKind, Span]]:
    """Every SQL statement, expression and query of a body, in the order of the text."""
    waiting: list[object] = [statement]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            yield part
        else:
            waiting.extend(reversed(list(_parts(part))))


def _parts(part: object) -> Iterator[object]:
    """What a node of the tree is made of: other nodes, and spans with their kinds."""
    assert is_dataclass(part)
    for field in fields(part):
        value: object = getattr(part, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            found = item[-1] if isinstance(item, tuple) else item  # of SIGNAL, with its name
            if isinstance(found, Span):
                yield _SPAN_KINDS.get(field.name, SpanKind.EXPRESSION), found
            elif is_dataclass(found):
                yield found
