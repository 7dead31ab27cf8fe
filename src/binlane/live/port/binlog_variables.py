"""The binlogs' variables at the port: `binlog_format` and its like never change the source's log.

The source logs full rows whatever a client sets; what a client sets holds for the binlogs. So a SET
is sent to the source with each of these variables given the value that it has there: the source
still says who may not set it, where it cannot be set, and what it warns of, and nothing changes. The value itself is
for the model of the session, or, SET GLOBAL, for the sessions that begin later. Where one of these
variables is read, the value that it has for the binlogs takes its place in the text.

Everything here is pure: who asks the source is the judge. Texts are changed where the reader says
that something stands; they are put together from the client's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from binlane.live.gateway.answers import RowsAnswer
from binlane.log.codec.packets.results import Cell, ResultSet
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import quote
from binlane.statements.session.session import Session
from binlane.statements.sql.facts import StatementFacts, SystemVariableUse, VariableScope
from binlane.statements.sql.servers import Dialect, Fact, has
from binlane.statements.sql.statement_kinds import WRITING_KINDS, StatementKind
from binlane.statements.sql.stored import runs_nothing_stored
from binlane.statements.sql.tokens import TokenKind, tokenise
from binlane.statements.sql.tree.expressions import Literal, LiteralKind, Name, SelectItem, walk
from binlane.statements.sql.tree.statements import Set, SetItem, SetStatement

FORMAT: Final = "binlog_format"
ROW_IMAGE: Final = "binlog_row_image"
_LOGGED: Final = "sql_log_bin"
_SWITCH: Final = ("OFF", "ON")
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    FORMAT: ("MIXED", "STATEMENT", "ROW"),
    ROW_IMAGE: ("MINIMAL", "NOBLOB", "FULL", "FULL_NODUP"),
    "binlog_direct_non_transactional_updates": _SWITCH,
    _LOGGED: _SWITCH,
}
"""The binlogs' variables, and their values by number."""
_DEFAULTS: Final = {
    FORMAT: "MIXED",
    ROW_IMAGE: "FULL",
    "binlog_direct_non_transactional_updates": "OFF",
    _LOGGED: "ON",
}
_AT_SOURCE: Final = {FORMAT: "ROW", ROW_IMAGE: "FULL", _LOGGED: "ON"}
_WORDS: Final = {"TRUE": "ON", "FALSE": "OFF"}
_KEPT: Final = "binlog_row_value_options"
"""Variable that the source's session has as binlane needs it, whatever the client sets."""
TRACKING: Final = {
    Flavor.MARIADB: "session_track_system_variables",
    Flavor.MYSQL: "session_track_gtids",
}
"""The variable by which a session says whether it wants to be told GTIDs. The source tells binlane."""
_TRACKING: Final = frozenset(TRACKING.values())
_ALL_GTIDS: Final = "ALL_GTIDS"
_TOLD: Final = ("OFF", "OWN_GTID", _ALL_GTIDS)
"""Values of MySQL's, by number."""
_TRACKED: Final = "last_gtid"
_GLOBAL: Final = frozenset((VariableScope.GLOBAL, VariableScope.PERSIST))
_READING: Final = WRITING_KINDS | {
    *(StatementKind.SELECT, StatementKind.SET, StatementKind.DO, StatementKind.CALL),
}
"""Statements in which values take the places of the binlogs' variables: no definitions."""
_SHOWING: Final = {
    "SHOW VARIABLES": False,
    "SHOW SESSION VARIABLES": False,
    "SHOW LOCAL VARIABLES": False,
    "SHOW GLOBAL VARIABLES": True,
}
"""By whether global values are shown."""
_INTEGERS: Final = frozenset(
    (ColumnType.TINY, ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG, ColumnType.LONGLONG)
)
_NO_NAMES: Final = frozenset(
    (
        *(ColumnType.DECIMAL, ColumnType.NEWDECIMAL, ColumnType.FLOAT, ColumnType.DOUBLE),
        *(ColumnType.BIT, ColumnType.YEAR, ColumnType.NULL),
    )
)
_ALIAS_MAX: Final = 255
_WARNINGS: Final = "warning_count"

Value = str | int | None
"""A value as SET takes it: a word or string, an integer, or what no variable takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A statement rewritten for the source and for the session's model.

    Attributes:
        source: Text that is sent to the source.
        model: Text for the model of the session: values stand in place of expressions.
        global_values: Values that the statement gives to later sessions once the source has run it, by
            variable name; None for DEFAULT.
        tracking: Value of the variable of `TRACKING` for the client once the source has run the statement;
            None for an unchanged value.
    """

    source: str
    model: str
    global_values: Mapping[str, str | None] = field(default_factory=dict)
    tracking: str | None = None


Known = Callable[[str, bool], str | None]
"""Gives the value of a binlogs' variable, by name and whether the global one is meant, for
`warning_count` how many warnings there are beside the source's own, and what the variable of
`TRACKING` is for the client; None where the source has the client's own."""


class _Edit(NamedTuple):
    """A part of a text, and the text that takes its place."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """An assignment that does not go to the source as it is.

    Attributes:
        start: Offset at which the assignment begins, with its scope.
        value_start: Offset at which the assignment's value begins.
        end: Offset at which the assignment ends.
        is_global: True if the scope is GLOBAL or PERSIST.
        is_default: True if the value is DEFAULT.
        is_open: True if the source has to be asked for the value.
        value: Assigned value, as a variable takes it; None as long as the value is open.
    """

    start: int
    value_start: int
    end: int
    name: str
    is_global: bool
    is_default: bool
    is_open: bool
    value: Value = None


def known_of(session: Session, notes: int = 0, tracking: str | None = None) -> Known:
    """The values that the binlogs' variables have in a session of the model.

    Args:
        session: Model of the client's session.
        notes: Number of warnings that the session has beside the source's own, for `@@warning_count`.
        tracking: Value of the variable of `TRACKING` for the client; None where nothing was added to it.
    """

    def known(name: str, is_global: bool) -> str | None:  # noqa: FBT001  # as `Known` is called
        if name == _WARNINGS:
            return str(notes) if notes else None
        if name in _TRACKING:
            is_added = name == TRACKING[Flavor(session.dialect.flavor)] and not is_global
            return tracking if is_added else None
        value = session.binlog_variable(name, is_global=is_global)
        values = NAMES[name]
        if value.isdigit() and int(value) < len(values):
            return values[int(value)]
        if value in _WORDS:
            return _WORDS[value]
        return value if value in values else _DEFAULTS[name]

    return known


def concerns(facts: StatementFacts, *, is_first: bool = False) -> bool:
    """True if a statement has to be rewritten before it is sent.

    Args:
        facts: Parsed facts of the statement's text.
        is_first: True if the session was not followed before: its warnings are the source's.
    """
    variables = facts.system_variables
    assigned = facts.assignments or facts.statement_assignments
    if not (variables or assigned):
        return False  # nearly all
    return any(
        _is_held(one.name) for one in (*facts.assignments, *facts.statement_assignments)
    ) or (
        facts.effects.kind in _READING
        and any(
            _is_read(one.name) and not (is_first and one.name == _WARNINGS) for one in variables
        )
    )


def shows(facts: StatementFacts) -> bool:
    """True if a statement shows variables, so that its rows have to be told by `shown`.

    False for a statement that may run a stored function: its rows are not asked for beside the session.
    """
    return facts.verb in _SHOWING and runs_nothing_stored(facts)


def question(facts: StatementFacts, known: Known) -> str | None:
    """Give the query to the source that a statement's rewriting needs first; None for no query.

    Expressions are evaluated before anything is assigned, as the servers do it.
    """
    reads = _reads(facts, known)
    expressions = [
        f"@@GLOBAL.{item.name}"
        if item.is_default
        else "(" + _edited(facts.text, reads, item.value_start, item.end).strip() + ")"
        for item in _items(facts, known)
        if item.is_open
    ]
    return f"SELECT {', '.join(expressions)} LIMIT 1" if expressions else None


def rewrite(
    facts: StatementFacts,
    known: Known,
    answer: ResultSet | None = None,
    *,
    flavor: Flavor,
    has_temporary_tables: bool = False,
) -> Rewritten:
    """Rewrite a statement into a text for the source and one for the model.

    Args:
        facts: Parsed facts of the statement, which `concerns` the binlogs' variables.
        known: Gives the current values of the variables.
        answer: Answer of the source to the query of `question`.
        flavor: Flavor of the source server.
        has_temporary_tables: True if the session has temporary tables.
    """
    items = list(_answered(_items(facts, known), answer))
    reads = _reads(facts, known)
    source: list[_Edit] = list(reads)
    # The values that a SET reads are in user variables then; of other statements the model logs the text.
    model: list[_Edit] = list(reads) if facts.effects.kind is StatementKind.SET else []
    global_values: dict[str, str | None] = {}
    tracking: str | None = None
    for item in items:
        taken = _taken(item, facts.dialect)
        is_own = item.name in NAMES or item.name in _TRACKING
        is_wrong = is_own and taken is None and not item.is_default
        if is_wrong or (item.name == _LOGGED and item.is_global):
            # The source refuses it, in its own words.
            continue
        inside = [edit for edit in source if item.start <= edit.start < item.end]
        source = [edit for edit in source if edit not in inside]
        source.append(_for_source(item, facts, flavor, has_temporary_tables=has_temporary_tables))
        if item.name in _TRACKING and isinstance(facts.tree, Set):
            tracking = taken  # SET STATEMENT takes it back
        if item.name not in NAMES:
            continue
        if taken is not None:
            model = [edit for edit in model if not item.start <= edit.start < item.end]
            model.append(_Edit(item.value_start, item.end, f" '{taken}'"))
        if item.is_global:
            global_values[item.name] = taken
    return Rewritten(
        source=_edited(facts.text, source),
        model=_edited(facts.text, model),
        global_values=global_values,
        tracking=tracking,
    )


def tells_gtids(tracking: str) -> bool:
    """True if a client wants to be told GTIDs.

    Args:
        tracking: Value of the variable of `TRACKING` for the client.
    """
    told = {part.strip().lower() for part in tracking.split(",")}
    return not told.isdisjoint((_TRACKED, "*", *(each.lower() for each in _TOLD[1:])))


def telling_gtids(flavor: Flavor) -> str:
    """The statement that has a session told the GTIDs of its groups, whatever it is told else."""
    name = TRACKING[flavor]
    if flavor is Flavor.MYSQL:
        return f"SET SESSION {name} = OWN_GTID"
    return f"SET SESSION {name} = {_with_gtids(f'@@SESSION.{name}')}"


def mended(values: Mapping[str, str]) -> str | None:
    """The statement that makes a session log full rows again; None where it does.

    Only a program that binlane did not know can have changed the variables.

    Args:
        values: Values of the session's variables at the source, as it shows them.
    """
    wrong = [
        f"{name} = {value}"
        for name, value in _AT_SOURCE.items()
        if values.get(name, value) != value
    ]
    return f"SET SESSION {', '.join(wrong)}" if wrong else None


def shown(facts: StatementFacts, result: ResultSet, known: Known) -> RowsAnswer:
    """The rows of SHOW VARIABLES with the values that the binlogs have.

    What WHERE says of values was asked of the source's.
    """
    is_global = _SHOWING[facts.verb]
    rows: list[Sequence[Cell]] = []
    for row in result.rows:
        name = (row[0] or b"").decode("ascii", "replace").lower()
        value: Cell = row[-1]
        own = known(name, is_global) if name in NAMES or name in _TRACKING else None
        if own is not None:
            value = (own if name in NAMES else _as_shown(own, value)).encode()
        rows.append((*row[:-1], value))
    return RowsAnswer(result.heads, rows)


# Places in a text ---------------------------------------------------------------------------------


def _is_held(name: str) -> bool:
    return name in NAMES or name == _KEPT or name in _TRACKING


def _is_read(name: str) -> bool:
    return name in NAMES or name == _WARNINGS or name in _TRACKING


def _set_items(facts: StatementFacts) -> Iterator[SetItem]:
    node = facts.whole
    while isinstance(node, SetStatement):
        yield from node.items
        node = node.statement
    if isinstance(node, Set):
        yield from node.items


def _items(facts: StatementFacts, known: Known) -> Iterator[_Item]:
    for item in _set_items(facts):
        name = item.name
        is_global = item.scope in ("global", "persist", "persist_only")
        is_tracking = name in _TRACKING and known(name, is_global) is not None
        if name in NAMES or is_tracking or (name == _KEPT and not is_global):
            start, end = facts.place(item.at), facts.place(item.end)
            value, is_open = None, is_tracking
            if item.value is not None:
                value, is_open = (None, False) if name == _KEPT else _plain(item, facts)
            yield _Item(
                start=start,
                value_start=_behind_sign(facts, start, end),
                end=end,
                name=name,
                is_global=is_global,
                is_default=item.value is None,
                is_open=is_open,
                value=value,
            )


def _behind_sign(facts: StatementFacts, start: int, end: int) -> int:
    """Find the offset at which an assignment's value begins: behind the first `=` or `:=`."""
    text = facts.text[start:end]
    for token in tokenise(text, facts.dialect):
        if token.kind is TokenKind.OPERATOR and token.text in ("=", ":="):
            return start + token.end
    raise AssertionError(f"{text!r} assigns something")


def _plain(item: SetItem, facts: StatementFacts) -> tuple[Value, bool]:
    """Read a value from the text; the flag is True if the source has to be asked for it instead."""
    node = item.value
    assert node is not None, "it is not DEFAULT"
    text = facts.text_of(node)
    if isinstance(node, Name) and len(node.parts) == 1:
        return node.parts[0], False
    if isinstance(node, Literal) and not node.introducer:
        if node.kind in (LiteralKind.NUMBER, LiteralKind.NULL):
            return (int(text) if text.isdigit() else None), False
        if node.kind in (LiteralKind.TRUE, LiteralKind.FALSE):
            return int(node.kind is LiteralKind.TRUE), False
        tokens = [each for each in tokenise(text, facts.dialect) if each.kind is not TokenKind.END]
        if node.kind is LiteralKind.STRING and len(tokens) == 1:
            return tokens[0].value, False
    return None, True


def _answered(items: Iterator[_Item], answer: ResultSet | None) -> Iterator[_Item]:
    place = 0
    for item in items:
        if not item.is_open:
            yield item
            continue
        assert answer is not None, "the source was asked"
        cell, kind = answer.rows[0][place], answer.heads[place].type_code
        place += 1
        value: Value = None
        if cell is not None and kind in _INTEGERS:
            value = int(cell)
        elif cell is not None and kind not in _NO_NAMES:
            value = cell.decode("latin-1")
        yield replace(item, value=value)


def _taken(item: _Item, dialect: Dialect) -> str | None:
    """Give the value that a variable takes from an assignment; None if it does not take it."""
    values, value = NAMES.get(item.name, _TOLD), item.value
    if item.name == ROW_IMAGE and not has(Fact.FULL_NODUP, dialect.flavor, dialect.version):
        values = values[:-1]
    if item.name == TRACKING[Flavor.MARIADB]:
        return value if isinstance(value, str) else None
    if isinstance(value, int):
        return values[value] if 0 <= value < len(values) else None
    if value is None:
        return None
    return next((each for each in values if each == value.upper() and value.isascii()), None)


# Changes to texts ---------------------------------------------------------------------------------


def _for_source(
    item: _Item, facts: StatementFacts, flavor: Flavor, *, has_temporary_tables: bool
) -> _Edit:
    """The assignment that changes nothing, in the place of one that would."""
    name = item.name
    if name == TRACKING[Flavor.MARIADB]:
        given = facts.text[item.value_start : item.end].strip()
        given = f"@@GLOBAL.{name}" if item.is_default else f"({given})"
        return _Edit(item.value_start, item.end, f" {_with_gtids(given)}")
    if name == FORMAT and flavor is Flavor.MYSQL and has_temporary_tables and not item.is_global:
        # MySQL refuses to set a format, also to what it is, while there are temporary tables; of
        # the binlogs each has its own rules for those. The same account may set the image.
        name = ROW_IMAGE
        return _Edit(item.start, item.end, f"@@SESSION.{name} = @@SESSION.{name}")
    scope = "GLOBAL" if item.is_global else "SESSION"
    # A variable that MySQL warns of must not be read for it.
    value = None if item.is_global else _AT_SOURCE.get(name)
    return _Edit(item.value_start, item.end, f" {value or f'@@{scope}.{name}'}")


def _with_gtids(tracked: str) -> str:
    """The expression for a list of variables that MariaDB tells, with that which tells GTIDs."""
    return f"IF({tracked} = '*', '*', CONCAT_WS(',', NULLIF({tracked}, ''), '{_TRACKED}'))"


def _as_shown(own: str, value: Cell) -> str:
    """Give the value shown to a client that has set `own`, where the source has `value`."""
    told = value.decode() if isinstance(value, bytes) else str(value)
    if own in _TOLD:
        return own
    if tells_gtids(own):
        return told
    return ",".join(name for name in told.split(",") if name != _TRACKED)


def _reads(facts: StatementFacts, known: Known) -> list[_Edit]:
    """Values for the binlogs' variables that a statement reads, and names for its columns."""
    if facts.effects.kind not in _READING:
        return []
    uses: list[SystemVariableUse] = []
    edits: list[_Edit] = []
    for use in facts.system_variables:
        is_global = use.scope in _GLOBAL
        if not _is_read(use.name) or (use.name == _LOGGED and is_global):
            continue
        value = known(use.name, is_global)
        if value is None or _is_at_source(use.name, value):
            continue
        is_warned_of = use.name == FORMAT and facts.dialect.flavor == Flavor.MYSQL.value
        uses.append(use)
        literal = _literal(use.name, value, is_warned_of=is_warned_of)
        edits.append(_Edit(use.offset, use.offset + use.length, literal))
    for node in walk(facts.whole):
        if isinstance(node, SelectItem) and node.alias is None:
            start, end = facts.place(node.at), facts.place(node.end)
            is_short = end - start <= _ALIAS_MAX
            if is_short and any(start <= use.offset < end for use in uses):
                edits.append(_Edit(end, end, f" AS {quote(facts.text[start:end])}"))
    return edits


def _literal(name: str, value: str, *, is_warned_of: bool) -> str:
    if name == _WARNINGS:
        return f"(@@{_WARNINGS} + {value})"
    if name in _TRACKING:
        return _tracking_literal(name, value)
    if is_warned_of:
        return f"CONCAT('{value}', LEFT(@@{name}, 0))"
    return str(_SWITCH.index(value)) if NAMES[name] is _SWITCH else f"'{value}'"


def _is_at_source(name: str, value: str) -> bool:
    """True if the source's variable of `TRACKING` has the value that a client has set."""
    return name in _TRACKING and value != _ALL_GTIDS and tells_gtids(value)


def _tracking_literal(name: str, value: str) -> str:
    """The expression for a value that a client has set of `TRACKING`, and the source has not."""
    if value in _TOLD:
        return f"'{value}'"
    told = f"CONCAT(',', @@SESSION.{name}, ',')"
    return f"TRIM(BOTH ',' FROM REPLACE({told}, ',{_TRACKED},', ','))"


def _edited(text: str, edits: Sequence[_Edit], start: int = 0, end: int | None = None) -> str:
    """Give a part of a text with its edits made."""
    end = len(text) if end is None else end
    parts: list[str] = []
    for edit in sorted(edits):
        if start <= edit.start and edit.end <= end:
            parts += (text[start : edit.start], edit.text)
            start = edit.end
    return "".join((*parts, text[start:end]))
