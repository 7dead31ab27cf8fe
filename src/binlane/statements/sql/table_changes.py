"""`Table` values as CREATE TABLE, ALTER TABLE, CREATE INDEX and DROP INDEX make them.

Columns come from `table_definitions`; keys are made here, with the names that servers make up where
the text has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from binlane.names import TableName, quote
from binlane.statements.sql.check_names import altered_checks, named_checks
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.foreign_keys import (
    altered_references,
    column_references,
    foreign_key_of,
    references_named,
)
from binlane.statements.sql.schema import ForeignKey, Key, Table, printed_engine
from binlane.statements.sql.table_definitions import (
    TableColumn,
    alter_table,
    altered_default,
    create_table,
    dropped_columns,
    renamed_columns,
)
from binlane.statements.sql.tree.definitions import (
    AlterAction,
    AlterTable,
    CheckDefinition,
    CreateIndex,
    CreateTable,
    DefinedColumn,
    DropIndex,
    KeyDefinition,
    KeyPart,
    Partitioning,
    TableOption,
)

PRIMARY: Final = "PRIMARY"
FOREIGN_KEY_ENGINES: Final = frozenset({"INNODB", "NDBCLUSTER", "NDB"})
"""Others read foreign keys and forget them."""


def column_keys(columns: Iterable[DefinedColumn]) -> list[Key]:
    """Keys that stand in the definitions of columns, names left empty."""
    keys = []
    for column in columns:
        part = (quote(column.name),)
        if column.key == PRIMARY:
            keys.append(Key(name=PRIMARY, columns=(column.name,), is_unique=True, parts=part))
        if "UNIQUE" in column.words:
            keys.append(Key(name="", columns=(column.name,), is_unique=True, parts=part))
    return keys


def key_of(node: KeyDefinition, facts: StatementFacts) -> Key:
    """A key that is no foreign one."""
    is_primary = node.kind == PRIMARY
    return Key(
        name=PRIMARY if is_primary else node.name or node.constraint,
        columns=tuple(part.column for part in node.parts),
        is_unique=is_primary or node.kind == "UNIQUE",
        is_fulltext=node.kind == "FULLTEXT",
        is_spatial=node.kind == "SPATIAL",
        parts=tuple(_part(part, facts) for part in node.parts),
        parser=node.parser or None,
        algorithm=node.algorithm,
    )


def named(keys: Iterable[Key], others: Sequence[Key] = ()) -> list[Key]:
    """Keys with names for those that have none, different from each other and from `others`.

    Source: MariaDB 10.11 sql/sql_table.cc, make_unique_key_name.
    """
    pending = list(keys)
    return KeyNames(key.name for key in others).all_named(pending)


class KeyNames:
    """The names that keys of one table have, in any case, so that others get other ones."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Begin with some names; an empty one is none."""
        self._taken = {name.lower() for name in names if name}
        # Numbers up to which the names of a column are taken.
        self._numbers: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._taken

    def take(self, name: str) -> None:
        """Note a key's name."""
        self._taken.add(name.lower())

    def all_named(self, keys: Sequence[Key]) -> list[Key]:
        """Keys, each with a name; those that have some keep them."""
        self._taken.update(key.name.lower() for key in keys if key.name)
        return [self.named(key) for key in keys]

    def named(self, key: Key) -> Key:
        """A key, with a name that none of the others has where it has none."""
        if not key.name:
            key = replace(key, name=self.made_up(key.columns[0] or "functional_index"))
        self.take(key.name)
        return key

    def made_up(self, column: str) -> str:
        """A key's name: that of its first column, with a number if it is taken."""
        if column not in self and column.upper() != PRIMARY:
            return column
        number = self._numbers.get(column.lower(), 2)
        while f"{column}_{number}" in self:
            number += 1
        self._numbers[column.lower()] = number
        return f"{column}_{number}"


def in_order(keys: Iterable[Key], columns: Sequence[TableColumn]) -> tuple[Key, ...]:
    """Keys as the servers order them: primary, unique without NULL, unique, others, full-text.

    Source: MariaDB 10.11 sql/sql_table.cc, sort_keys.
    """
    nullable = {column.name.lower() for column in columns if column.is_nullable}
    return tuple(sorted(keys, key=lambda key: _rank(key, nullable)))


def with_foreign_keys(keys: Sequence[Key], references: Iterable[ForeignKey]) -> list[Key]:
    """Keys, with those that the server adds for foreign keys that none of them serves."""
    made = list(keys)
    names: KeyNames | None = None
    served: set[tuple[str, ...]] = set()
    for reference in references:
        if names is None:
            names = KeyNames(key.name for key in made)
            served = {columns for key in made for columns in _beginnings(key)}
        if tuple(map(str.lower, reference.columns)) in served:
            continue
        parts = tuple(quote(column) for column in reference.columns)
        key = Key(name=reference.name, columns=reference.columns, parts=parts)
        made.append(names.named(key))
        served.update(_beginnings(key))
    return made


def _beginnings(key: Key) -> Iterator[tuple[str, ...]]:
    """The first columns of a key in small letters: one, two, and so on."""
    columns = tuple(map(str.lower, key.columns))
    return (columns[:count] for count in range(1, len(columns) + 1))


def has_key(keys: Sequence[Key], name: str) -> bool:
    """True if one of the keys has a name, in any case."""
    return any(key.name.lower() == name.lower() for key in keys)


def without_key(keys: Sequence[Key], name: str) -> list[Key]:
    """The keys but for that of a name, in any case."""
    return [key for key in keys if key.name.lower() != name.lower()]


def _rank(key: Key, nullable: Collection[str]) -> int:
    if key.is_primary:
        return 0
    if key.is_unique:
        return 2 if any(column.lower() in nullable for column in key.columns) else 1
    return 4 if key.is_fulltext else 3


def _part(part: KeyPart, facts: StatementFacts) -> str:
    """Give one column of a key as it is printed."""
    if part.expression is not None:
        printed = f"({facts.text_of(part.expression)})"
    else:
        printed = quote(part.column)
    if part.length is not None:
        printed += f"({part.length})"
    return printed + " DESC" * part.is_descending


_ENGINE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MERGE": "MRG_MYISAM",
        "HEAP": "MEMORY",
        "INNOBASE": "INNODB",
        "NDB": "NDBCLUSTER",
    }
)
_PRINTED_OPTIONS: Final = frozenset(
    [
        "ENGINE",
        "AUTO_INCREMENT",
        "COLLATE",
        "MIN_ROWS",
        "MAX_ROWS",
        "AVG_ROW_LENGTH",
        "PACK_KEYS",
        "STATS_PERSISTENT",
        "STATS_AUTO_RECALC",
        "STATS_SAMPLE_PAGES",
        "CHECKSUM",
        "PAGE_CHECKSUM",
        "DELAY_KEY_WRITE",
        "ROW_FORMAT",
        "TRANSACTIONAL",
        "KEY_BLOCK_SIZE",
        "INSERT_METHOD",
        "COMMENT",
        "CONNECTION",
    ]
)
"""Options with one value that the servers print, and CHARACTER SET as `CHARSET`."""


def engine_name(name: str) -> str:
    """An engine's name in capitals, one for all that mean the same."""
    upper = name.upper()
    return _ENGINE_NAMES.get(upper, upper)


def named_engine(options: Iterable[TableOption]) -> str | None:
    """The engine that options name, in capitals; None if they name none."""
    named_ = [option.value for option in options if option.name == "ENGINE"]
    return engine_name(named_[-1]) if named_ else None


def created(
    name: TableName,
    facts: StatementFacts,
    *,
    engine: str,
    charset: str | None,
    is_temporary: bool = False,
) -> Table:
    """Give the table of a CREATE TABLE; of one with a SELECT, the part before that.

    Args:
        name: Name of the new table.
        facts: Facts of the statement; its tree is a `CreateTable`.
        engine: Engine in capitals for a table that names none.
        charset: Character set of the database; None where nothing tells it.
        is_temporary: True if the statement makes a temporary table.
    """
    node = facts.tree
    assert isinstance(node, CreateTable)
    is_mariadb = facts.dialect.may_be_mariadb
    columns = [each for each in node.elements if isinstance(each, DefinedColumn)]
    keys = column_keys(columns)
    references = column_references(columns, name)
    for each in node.elements:
        if isinstance(each, KeyDefinition) and each.kind == "FOREIGN":
            references.append(foreign_key_of(each, name, is_mariadb=is_mariadb))
        elif isinstance(each, KeyDefinition):
            keys.append(key_of(each, facts))
    own_engine = named_engine(node.options) or engine
    table = Table(
        name=name,
        definition=create_table(node, facts, charset=charset),
        engine=own_engine,
        is_temporary=is_temporary,
        create_statement=facts.text,
        dialect=facts.dialect,
        checks=tuple(
            facts.text_of(each) for each in node.elements if isinstance(each, CheckDefinition)
        ),
    )
    checks = [each for each in node.elements if isinstance(each, CheckDefinition)]
    checks += [check for column in columns for check in column.checks]
    unenforced = frozenset(each.name.lower() for each in checks if each.is_unenforced)
    names = named_checks(node.elements, name.table, is_mariadb=is_mariadb)
    table = replace(table, unenforced=unenforced, check_names=names)
    table = _with_options(table, node.options)
    if node.partitioning is not None:
        table = _partitioned(table, node.partitioning, facts)
    kept = references if own_engine in FOREIGN_KEY_ENGINES and not is_temporary else []
    return _with_keys(table, named(keys), references_named(kept, name.table))


def with_invisible_primary_key(table: Table) -> Table:
    """A table as MySQL makes it with sql_generate_invisible_primary_key: of InnoDB, without a key.

    A unique key without NULL serves as the primary one.
    """
    columns = table.definition.columns
    nullable = {column.name.lower() for column in columns if column.is_nullable}
    has_key = any(
        key.is_primary or nullable.isdisjoint(column.lower() for column in key.columns)
        for key in table.unique_keys
    )
    if table.engine != "INNODB" or has_key:
        return table
    definition = replace(table.definition, columns=(_INVISIBLE_KEY, *columns))
    name = _INVISIBLE_KEY.name
    key = Key(name=PRIMARY, columns=(name,), is_unique=True, parts=(quote(name),))
    made = replace(table, definition=definition)
    return _with_keys(made, [key, *table.keys], table.foreign_keys)


def has_invisible_key(table: Table) -> bool:
    """True if a table has the key of `with_invisible_primary_key`."""
    return table.definition.columns[:1] == (_INVISIBLE_KEY,)


_INVISIBLE_KEY: Final = TableColumn(
    name="my_row_id",
    type_name="BIGINT",
    is_unsigned=True,
    is_visible=False,
    is_nullable=False,
    is_auto_increment=True,
)


def with_selected(table: Table, selected: Sequence[TableColumn]) -> Table:
    """A table with the columns of its SELECT behind those that only its own list names.

    Source: MariaDB 10.11 sql/sql_table.cc, mysql_prepare_create_table.
    """
    own = {column.name.lower(): column for column in table.definition.columns}
    chosen = {column.name.lower() for column in selected}
    columns = (
        *(column for name, column in own.items() if name not in chosen),
        *(own.get(column.name.lower(), column) for column in selected),
    )
    definition = replace(table.definition, columns=columns)
    return _with_keys(replace(table, definition=definition), table.keys, table.foreign_keys)


def indexed(table: Table, facts: StatementFacts) -> Table:
    """Give a table after CREATE INDEX."""
    node = facts.tree
    assert isinstance(node, CreateIndex)
    if node.key.if_not_exists and has_key(table.keys, node.key.name):
        return table
    others = without_key(table.keys, node.key.name)
    return _with_keys(table, [*others, key_of(node.key, facts)], table.foreign_keys)


def unindexed(table: Table, facts: StatementFacts) -> Table:
    """Give a table after DROP INDEX."""
    node = facts.tree
    assert isinstance(node, DropIndex)
    return _with_keys(table, without_key(table.keys, node.name), table.foreign_keys)


def _with_keys(table: Table, keys: Sequence[Key], references: Sequence[ForeignKey]) -> Table:
    """A table with other keys, and what follows from them for its columns."""
    columns = table.definition.columns
    in_primary = {column.lower() for key in keys if key.is_primary for column in key.columns}
    if in_primary:
        columns = tuple(
            replace(column, is_nullable=False) if column.name.lower() in in_primary else column
            for column in columns
        )
        table = replace(table, definition=replace(table.definition, columns=columns))
    return replace(
        table,
        keys=in_order(with_foreign_keys(keys, references), columns),
        foreign_keys=tuple(references),
        auto_increment=next((each.name for each in columns if each.is_auto_increment), None),
    )


def _with_options(table: Table, options: Iterable[TableOption]) -> Table:
    given = dict(table.options)
    for option in options:
        if option.name == "ENGINE":
            engine = engine_name(option.value)
            table = replace(table, engine=engine)
            given["ENGINE"] = printed_engine(engine)
        elif option.name == "CHARACTER SET":
            given["CHARSET"] = option.value
        elif option.name == "UNION":
            table = replace(table, union=union_of(option, table.name))
        elif option.name in _PRINTED_OPTIONS:
            given[option.name] = option.value
        if option.name == "TRANSACTIONAL":
            table = replace(table, is_transactional_option=option.value != "0")
    return replace(table, options=tuple(given.items()))


def union_of(option: TableOption, name: TableName) -> tuple[TableName, ...]:
    """The tables of UNION=(…), of a table of the engine MERGE."""
    return tuple(TableName(each.database or name.database, each.name) for each in option.tables)


def _partitioned(table: Table, node: Partitioning, facts: StatementFacts) -> Table:
    return replace(table, partitioning=facts.text_of(node))


# ALTER TABLE ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Altered:
    """A table while the actions of an ALTER TABLE are done."""

    table: Table
    keys: list[Key]
    facts: StatementFacts
    names: KeyNames = field(init=False)

    def __post_init__(self) -> None:
        self.keep(self.keys)

    def keep(self, keys: list[Key]) -> None:
        """Have these keys and no others."""
        self.keys = keys
        self.names = KeyNames(key.name for key in keys)


def altered(table: Table, facts: StatementFacts, *, engine: str, charset: str | None) -> Table:
    """Give a table after an ALTER TABLE; its name stays.

    Args:
        table: Table before the ALTER TABLE.
        facts: Facts of the statement; its tree is an `AlterTable`.
        engine: Default engine, for a table without one.
        charset: Character set of the database.

    Raises:
        SqlSyntaxError: If the statement puts a column behind one that is not there.
    """
    node = facts.tree
    assert isinstance(node, AlterTable)
    found = _followed(table, node, facts)
    definition = alter_table(table.definition, node, facts, charset=charset)
    own, is_mariadb = table.name.table, facts.dialect.may_be_mariadb
    kept, added = altered_checks(table.check_names, node.actions, own, is_mariadb=is_mariadb)
    found.table = replace(table, definition=definition, check_names=kept + added)
    for action in node.actions:
        _act(found, action)
    columns = [column for action in node.actions for column in action.columns]
    has_primary = any(key.is_primary for key in found.keys)
    keys = [key for key in column_keys(columns) if not (key.is_primary and has_primary)]
    found.keys += found.names.all_named(keys)
    made = replace(found.table, engine=found.table.engine or engine)
    has_references = found.table.engine in FOREIGN_KEY_ENGINES
    references = altered_references(table.foreign_keys, table.name, facts) if has_references else []
    return _with_keys(made, found.keys, references)


def _followed(table: Table, node: AlterTable, facts: StatementFacts) -> _Altered:
    """Keys behind the renaming and dropping of columns."""
    dropped, renamed = dropped_columns(node.actions), renamed_columns(node.actions)
    keys = []
    for key in table.keys:
        kept = [
            (column, part)
            for column, part in zip(key.columns, key.parts or key.columns, strict=False)
            if column.lower() not in dropped
        ]
        if kept:
            keys.append(
                replace(
                    key,
                    columns=tuple(renamed.get(column.lower(), column) for column, _ in kept),
                    parts=tuple(_renamed_part(column, part, renamed) for column, part in kept),
                )
            )
    return _Altered(table, keys, facts)


def _renamed_part(column: str, part: str, renamed: Mapping[str, str]) -> str:
    new = renamed.get(column.lower())
    return part if new is None else part.replace(column, new, 1)


def _act(found: _Altered, action: AlterAction) -> None:  # noqa: C901 - one branch a kind
    """Apply one action of ALTER TABLE, as far as it is not about columns alone."""
    match action.kind:
        case "ADD KEY" | "ADD COLUMN":
            for key in (*action.keys, *([action.key] if action.key is not None else [])):
                _add_key(found, key)
        case "DROP PRIMARY KEY":
            found.keep(without_key(found.keys, PRIMARY))
        case "DROP KEY" | "DROP CONSTRAINT":
            found.keep(without_key(found.keys, action.name))
        case "RENAME KEY":
            renamed = (
                replace(key, name=action.new_name) if key.name == action.name else key
                for key in found.keys
            )
            found.keep(list(renamed))
        case "ALTER COLUMN":
            _alter_column(found, action)
        case "ALTER CHECK" | "ALTER CONSTRAINT" | "ADD CHECK":
            found.table = replace(found.table, unenforced=_unenforced(found.table, action))
        case "OPTION" if action.option is not None:
            found.table = _with_options(found.table, [action.option])
        case "PARTITION BY" if action.partitioning is not None:
            found.table = _partitioned(found.table, action.partitioning, found.facts)
        case "REMOVE PARTITIONING":
            found.table = replace(found.table, partitioning="")


def _unenforced(table: Table, action: AlterAction) -> frozenset[str]:
    if action.check is not None:
        own = frozenset((action.check.name.lower(),))
        return table.unenforced | own if action.check.is_unenforced else table.unenforced
    own = frozenset((action.name.lower(),))
    return table.unenforced | own if "NOT ENFORCED" in action.words else table.unenforced - own


def _add_key(found: _Altered, node: KeyDefinition) -> None:
    if node.kind == "FOREIGN":
        return
    key = key_of(node, found.facts)
    if not (key.name and key.name in found.names):
        found.keys.append(found.names.named(key))


def _alter_column(found: _Altered, action: AlterAction) -> None:
    name = action.name.lower()
    columns = tuple(
        altered_default(column, action, found.facts) if column.name.lower() == name else column
        for column in found.table.definition.columns
    )
    definition = replace(found.table.definition, columns=columns)
    found.table = replace(found.table, definition=definition)
