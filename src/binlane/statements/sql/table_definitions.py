"""The columns of tables as CREATE TABLE and ALTER TABLE make them, with their character sets.

Names and order are exact, also where one ALTER TABLE renames, moves and adds at once. Which tables
there are, and whether a definition is that of a TABLE_MAP, is asked of the `catalog`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from binlane.log.codec.charsets import BINARY
from binlane.names import quote
from binlane.statements.sql.column_charsets import (
    CHARSET_WORDS,
    NATIONAL_TYPES,
    TEXT_TYPES,
    binary_collation,
    collation_today,
    column_charset,
    named_charset,
    named_collation,
    names_own_charset,
)
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.parser import parse_expression
from binlane.statements.sql.parser.cursor import Stopped
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import SqlSyntaxError, string_value
from binlane.statements.sql.tree.definitions import (
    AlterAction,
    AlterTable,
    CreateTable,
    DefinedColumn,
    KeyDefinition,
    TableOption,
)
from binlane.statements.sql.tree.expressions import (
    Call,
    DataType,
    Expression,
    Literal,
    LiteralKind,
    Name,
    Node,
    Operation,
    walk,
)

_NOW: Final = frozenset({"NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
_VERSIONED: Final = "WITH SYSTEM VERSIONING"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column as its table's definition has it.

    Attributes:
        name: Name as it was written last.
        type_name: Type in capitals as one word, such as `VARCHAR` for `CHARACTER VARYING`.
        arguments: Texts in the parentheses behind the type; the members of an ENUM or SET.
        is_unsigned: True with UNSIGNED, ZEROFILL or SERIAL.
        charset: Character set of text; `binary` for bytes; None where it has none, or nothing tells
            it.
        is_visible: False if the column is INVISIBLE.
        is_generated: True if the column's values are computed.
        is_nullable: True if it can be NULL, as far as its own text says; a primary key says more.
        is_auto_increment: True with AUTO_INCREMENT or with SERIAL.
        default: Text behind DEFAULT as the statement has it; None without.
        default_form: Form of that text: `null`, `number` (TRUE and FALSE too), `string`, `now`
            (CURRENT_TIMESTAMP in one spelling), `call` for `(f())`, `expression` for all others;
            empty without.
        has_default_expression: True if that text is no constant: `uuid()`, `(1 + 1)`, `now()`.
        on_update: Text behind ON UPDATE, `CURRENT_TIMESTAMP` in one spelling; None without.
        generated: The expression of a generated column; None without.
        generated_modes: Modes in which that text is read: the names of `Dialect`'s attributes that
            held.
        is_stored: True if a generated column's values are STORED (PERSISTENT).
        collation: Collation named for the column; None without.
        comment: Text behind COMMENT; None without.
        check: Expression of the column's CHECK; None without.
        names_charset: True if the column names a character set or collation of its own.
        has_no_default: True if NULL is allowed but not the default: the column was made of one that
            cannot be NULL.
        row_time: `ROW START` or `ROW END` of a system period; empty for all others.
        is_unversioned: True for WITHOUT SYSTEM VERSIONING: a change of it alone makes no history.
    """

    name: str
    type_name: str
    arguments: tuple[str, ...] = ()
    is_unsigned: bool = False
    charset: str | None = None
    is_visible: bool = True
    is_generated: bool = False
    is_nullable: bool = True
    is_auto_increment: bool = False
    is_zerofill: bool = False
    default: str | None = None
    default_form: str = ""
    has_default_expression: bool = False
    on_update: str | None = None
    generated: str | None = None
    generated_modes: tuple[str, ...] = ()
    is_stored: bool = False
    collation: str | None = None
    comment: str | None = None
    check: str | None = None
    names_charset: bool = False
    has_no_default: bool = False
    row_time: str = ""
    is_unversioned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """A table's columns, and the rules for columns to come.

    Attributes:
        columns: Columns in order, without those that the server hides.
        charset: Default of new columns; None where nothing tells it.
        collation: Collation of new columns; None for the one that the character set has by itself.
        is_versioned: MariaDB's system versioning without columns of its own: the log has
            `row_start` and `row_end` behind the others.
        has_history: MariaDB's system versioning, with columns of its own or without.
        has_unique_key: True if it may have a unique key over a long column, for which MariaDB's log
            has a hidden column behind the others.
        has_default_expressions: True if the DEFAULT of some column is no constant.
        is_versioned_by_transaction: True if the system period is of numbers of transactions, not of times.
    """

    columns: tuple[TableColumn, ...]
    charset: str | None = None
    collation: str | None = None
    is_versioned: bool = False
    has_history: bool = False
    has_unique_key: bool = False
    has_default_expressions: bool = field(init=False, compare=False, repr=False)
    is_versioned_by_transaction: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        columns = self.columns
        expressions = [one for one in columns if one.has_default_expression and one.default]
        numbered = self.has_history and any(
            one.row_time and one.type_name == "BIGINT" for one in columns
        )
        object.__setattr__(self, "has_default_expressions", bool(expressions))
        object.__setattr__(self, "is_versioned_by_transaction", numbered)


def create_table(
    node: CreateTable, facts: StatementFacts, *, charset: str | None
) -> TableDefinition:
    """Give the columns of a CREATE TABLE, without those of a SELECT.

    Args:
        node: CREATE TABLE statement without LIKE.
        facts: Facts of the whole statement.
        charset: Character set of the database; None where nothing tells it.
    """
    own = named_charset(node.options)
    default = charset if own is None else own
    collation = named_collation(node.options)
    columns = [each for each in node.elements if isinstance(each, DefinedColumn)]
    defined = tuple(defined_column(each, facts, default, collation) for each in columns)
    has_history = any(option.name == _VERSIONED for option in node.options)
    if not has_history and (kept := {each.name for each in columns if _VERSIONED in each.words}):
        has_history = True
        defined = tuple(
            replace(one, is_unversioned=one.name not in kept and not one.row_time)
            for one in defined
        )
    return TableDefinition(
        columns=defined,
        charset=default,
        collation=collation,
        is_versioned=has_history and not any(map(_is_row_start, columns)),
        has_history=has_history,
        has_unique_key=_has_unique_key(node.elements),
    )


def alter_table(
    table: TableDefinition, node: AlterTable, facts: StatementFacts, *, charset: str | None
) -> TableDefinition:
    """Give a table's definition after an ALTER TABLE.

    Columns to add that exist already, and columns to change that do not exist, are left alone: then
    the definition is of a later time than the statement.

    Args:
        table: Definition before the ALTER TABLE.
        node: ALTER TABLE statement to apply.
        facts: Facts of the whole statement.
        charset: Character set of the database.

    Raises:
        SqlSyntaxError: If the statement puts a column behind one that is not there.
    """
    default, collation = table.charset, table.collation
    columns: tuple[TableColumn, ...] = table.columns
    is_versioned, has_history = table.is_versioned, table.has_history
    for action in node.actions:
        options = [] if action.option is None else [action.option]
        if action.kind == "CONVERT":
            if action.collation:
                options.append(TableOption(action.at, action.end, "COLLATE", action.collation))
            default, collation = named_charset(options) or charset, named_collation(options)
            columns = tuple(_converted(column, default, collation) for column in columns)
        elif any(option.name in {"CHARACTER SET", "COLLATE"} for option in options):
            default, collation = named_charset(options) or charset, named_collation(options)
        elif action.kind in {"ADD SYSTEM VERSIONING", "DROP SYSTEM VERSIONING"}:
            is_versioned = has_history = action.kind.startswith("ADD")
    columns = _rearranged(columns, node.actions, facts, default, collation)
    added = [column for action in node.actions for column in action.columns]
    return TableDefinition(
        columns=columns,
        charset=default,
        collation=collation,
        is_versioned=is_versioned and not any(map(_is_row_start, added)),
        has_history=has_history,
        has_unique_key=table.has_unique_key
        or _has_unique_key((*added, *(key for each in node.actions for key in each.keys)))
        or any(each.key is not None and each.key.kind == "UNIQUE" for each in node.actions),
    )


# Columns --------------------------------------------------------------------------------------


def defined_column(
    node: DefinedColumn, facts: StatementFacts, default: str | None, collation: str | None = None
) -> TableColumn:
    """The column that a part of a statement defines.

    Args:
        node: Part of the statement that defines the column.
        facts: Facts of the whole statement.
        default: Character set of the table; None if it is not known.
        collation: Collation of the table; None for that of its character set.
    """
    kind = node.type
    assert kind is not None  # every column of a statement names its type
    form = _default_form(node.default, is_in_parentheses=node.default_at != _at(node.default))
    return replace(
        typed_column(kind, default, collation),
        name=node.name,
        is_visible="INVISIBLE" not in node.words,
        is_generated=node.generated is not None or node.storage.startswith("ROW"),
        is_nullable=node.is_nullable is not False and node.key != "PRIMARY",
        is_auto_increment=node.is_auto_increment,
        default=default_text(node.default, form, facts, node.default_at, node.default_end),
        default_form=form,
        has_default_expression=form in {"now", "call", "expression"},
        on_update=None if node.on_update is None else now_text(node.on_update, facts),
        generated=_generated(node, facts),
        generated_modes=() if node.generated is None else _modes(facts.dialect),
        is_stored=node.storage in {"STORED", "PERSISTENT"},
        comment=None if node.comment is None else string_of(node.comment, facts),
        check=_check(node, facts),
        row_time=node.storage if node.storage.startswith("ROW") else "",
        is_unversioned="WITHOUT SYSTEM VERSIONING" in node.words,
    )


def typed_column(kind: DataType, default: str | None, collation: str | None = None) -> TableColumn:
    """A column of a type that says nothing else, and has no name.

    Args:
        kind: Data type of the column.
        default: Character set of text that names none.
        collation: Collation of text that names no character set; None for that of the default one.
    """
    charset = column_charset(kind, default)
    named = kind.collation and collation_today(kind.collation)
    own = named or binary_collation(kind, charset)
    takes_default = kind.name in TEXT_TYPES and CHARSET_WORDS.keys().isdisjoint(kind.words)
    return TableColumn(
        name="",
        type_name=kind.name,
        arguments=kind.arguments,
        is_unsigned=kind.name == "SERIAL" or not kind.words.isdisjoint({"UNSIGNED", "ZEROFILL"}),
        is_zerofill="ZEROFILL" in kind.words,
        charset=charset,
        collation=own or (collation if takes_default and not names_own_charset(kind) else None),
        names_charset=names_own_charset(kind),
    )


def string_of(node: Node, facts: StatementFacts) -> str:
    """The value of a string literal."""
    text = facts.text_of(node).lstrip("nN")
    return string_value(text, facts.dialect)


def constant(node: Expression | None, facts: StatementFacts) -> str | None:
    """The value of a default that is a constant, as text; TRUE and FALSE as 1 and 0.

    Returns:
        None if it is NULL, or there is none.

    Raises:
        ValueError: If the default is an expression, or a literal of another kind.
    """
    sign = ""
    if isinstance(node, Operation) and node.operator in {"NEG", "POS"}:
        sign = "-" * (node.operator == "NEG")
        node = node.operands[0]
    if node is None:
        return None
    if isinstance(node, Literal) and not node.introducer:
        if node.kind is LiteralKind.NUMBER:
            return sign + facts.text_of(node)
        if node.kind is LiteralKind.STRING and not sign:
            return string_of(node, facts)
        if node.kind is LiteralKind.NULL:
            return None
        if node.kind in {LiteralKind.TRUE, LiteralKind.FALSE}:
            return str(int(node.kind is LiteralKind.TRUE))
    raise ValueError("an expression")


def is_now(node: Expression | None) -> bool:
    """True if an expression is CURRENT_TIMESTAMP, by any of its names."""
    return isinstance(node, Call) and node.upper_name in _NOW


def now_text(node: Expression, facts: StatementFacts) -> str:
    """CURRENT_TIMESTAMP with its digits, as MySQL writes it."""
    arguments = node.arguments if isinstance(node, Call) else ()
    digits = facts.text_of(arguments[0]) if arguments else "0"
    return "CURRENT_TIMESTAMP" if digits == "0" else f"CURRENT_TIMESTAMP({digits})"


def _at(node: Node | None) -> int:
    return -1 if node is None else node.at


def _default_form(node: Expression | None, *, is_in_parentheses: bool) -> str:
    if node is None:
        return ""
    if is_now(node) and not is_in_parentheses:
        return "now"
    if is_in_parentheses:
        return "call" if isinstance(node, Call) and not node.arguments else "expression"
    inner = node.operands[0] if isinstance(node, Operation) and node.operands else node
    if not isinstance(inner, Literal):
        return "expression"
    if inner.kind is LiteralKind.NULL:
        return "null"
    is_number = inner.kind in {LiteralKind.NUMBER, LiteralKind.TRUE, LiteralKind.FALSE}
    return "number" if is_number else "string"


def default_text(
    node: Expression | None, form: str, facts: StatementFacts, at: int, end: int
) -> str | None:
    """The text of a default as definitions keep it."""
    if node is None:
        return None
    if form == "now":
        return now_text(node, facts)
    return facts.text[facts.place(at) : facts.place(end)]


def altered_default(column: TableColumn, action: AlterAction, facts: StatementFacts) -> TableColumn:
    """A column behind ALTER COLUMN … SET DEFAULT or DROP DEFAULT, or SET INVISIBLE."""
    if "INVISIBLE" in action.words or "VISIBLE" in action.words:
        return replace(column, is_visible="VISIBLE" in action.words)
    form = _default_form(action.default, is_in_parentheses=action.default_at != _at(action.default))
    return replace(
        column,
        default=default_text(action.default, form, facts, action.default_at, action.end),
        default_form=form,
        has_default_expression=form in {"now", "call", "expression"},
    )


def _generated(node: DefinedColumn, facts: StatementFacts) -> str | None:
    if node.storage.startswith("ROW"):
        return node.storage
    if node.generated is None:
        return None
    return facts.text[facts.place(node.generated_at) : facts.place(node.generated_end)]


_MODES: Final = (
    *("ansi_quotes", "no_backslash_escapes", "is_oracle", "pipes_as_concat", "ignore_space"),
    *("high_not_precedence", "charset"),
)


def _modes(dialect: Dialect) -> tuple[str, ...]:
    """The attributes of a session's dialect that another session may not have."""
    return tuple(name for name in _MODES if getattr(dialect, name))


def _check(node: DefinedColumn, facts: StatementFacts) -> str | None:
    if not node.checks:
        return None
    found = node.checks[-1]
    return facts.text[facts.place(found.condition_at) : facts.place(found.condition_end)]


# Effects of ALTER TABLE on columns ------------------------------------------------------------


def renamed_columns(actions: Iterable[AlterAction]) -> Mapping[str, str]:
    """The new names of columns, by the old ones in small letters."""
    found = {}
    for action in actions:
        if action.kind == "RENAME COLUMN":
            found[action.name.lower()] = action.new_name
        elif action.kind == "CHANGE COLUMN":
            found[action.name.lower()] = action.columns[0].name
    return found


def dropped_columns(actions: Iterable[AlterAction]) -> frozenset[str]:
    """Columns that go, in small letters."""
    return frozenset(each.name.lower() for each in actions if each.kind == "DROP COLUMN")


def _rearranged(
    columns: Sequence[TableColumn],
    actions: Sequence[AlterAction],
    facts: StatementFacts,
    charset: str | None,
    collation: str | None,
) -> tuple[TableColumn, ...]:
    """Give the columns after one ALTER TABLE: first those that stay in place, then moved and new ones.

    Names to change and drop are those before the statement, names to stand behind those after it.

    Source: MariaDB 10.11 sql/sql_table.cc, mysql_prepare_alter_table.
    """
    dropped, renamed = dropped_columns(actions), renamed_columns(actions)
    changed = {
        action.name.lower(): action
        for action in actions
        if action.kind in {"MODIFY COLUMN", "CHANGE COLUMN"}
    }
    made: list[TableColumn] = []
    for column in columns:
        key = column.name.lower()
        change = changed.get(key)
        if key in dropped or (change is not None and change.position):
            continue
        if change is not None:
            made.append(defined_column(change.columns[0], facts, charset, collation))
        else:
            made.append(_renamed(column, renamed))
    known = {column.name.lower() for column in columns}
    here = {column.name.lower() for column in made}
    for action in actions:
        if action.kind == "ADD COLUMN":
            for each in action.columns:
                if each.name.lower() not in here:
                    here.add(each.name.lower())
                    _insert(made, defined_column(each, facts, charset, collation), action, facts)
        elif action.name.lower() in known and action.position and action.columns:
            here.add(action.columns[0].name.lower())
            column = defined_column(action.columns[0], facts, charset, collation)
            _insert(made, column, action, facts)
    return tuple(made)


def _renamed(column: TableColumn, renamed: Mapping[str, str]) -> TableColumn:
    """A column behind the renaming of columns, which servers do in expressions, too."""
    name = renamed.get(column.name.lower(), column.name)
    text, modes = column.generated, column.generated_modes
    if text is None or not renamed:
        return replace(column, name=name)
    for node in reversed(names_in(text, modes)):
        new = renamed.get(node.parts[-1].lower())
        if new is not None:
            text = text[: node.at] + quote(new) + text[node.end :]
    return replace(column, name=name, generated=text)


def expression_of(text: str, modes: Sequence[str]) -> tuple[Expression, Dialect]:
    """Read the expression of a generated column; give its tree and its dialect.

    Args:
        text: Text of the expression, as in `TableColumn.generated`.
        modes: Names of modes, as in `TableColumn.generated_modes`.

    Raises:
        Stopped: Where the text is not understood.
        SqlSyntaxError: If a string or quoted name does not end.
    """
    held: Any = dict.fromkeys(modes, True)
    dialect = Dialect(**{**held, "charset": ""})
    return parse_expression(text, dialect), dialect


def names_in(text: str, modes: Sequence[str]) -> list[Name]:
    """The names in such an expression, in the order of the text; none if it is not understood."""
    try:
        tree, _ = expression_of(text, modes)
    except (Stopped, SqlSyntaxError):
        return []
    return sorted((node for node in walk(tree) if isinstance(node, Name)), key=lambda node: node.at)


def _insert(
    columns: list[TableColumn], column: TableColumn, action: AlterAction, facts: StatementFacts
) -> None:
    if action.position == "FIRST":
        columns.insert(0, column)
    elif not action.position:
        columns.append(column)
    else:
        index = _find(columns, action.after)
        if index is None:
            raise SqlSyntaxError(facts.text, 0, f"column {action.after}")
        columns.insert(index + 1, column)


def _find(columns: Sequence[TableColumn], name: str) -> int | None:
    """Give the index of a column; the servers compare column names without regard to case."""
    lower = name.lower()
    return next((i for i, column in enumerate(columns) if column.name.lower() == lower), None)


def _is_row_start(column: DefinedColumn) -> bool:
    return column.storage == "ROW START"


def _has_unique_key(elements: Iterable[object]) -> bool:
    """True if some key is UNIQUE: rather too often, the log then must still have more columns."""
    return any(
        (isinstance(each, KeyDefinition) and each.kind == "UNIQUE")
        or (isinstance(each, DefinedColumn) and "UNIQUE" in each.words)
        for each in elements
    )


def _converted(column: TableColumn, charset: str | None, collation: str | None) -> TableColumn:
    """A column behind CONVERT TO CHARACTER SET, which leaves bytes as they are."""
    if column.charset == BINARY or column.type_name not in TEXT_TYPES | NATIONAL_TYPES | {"JSON"}:
        return column
    return replace(column, charset=charset, collation=collation)
