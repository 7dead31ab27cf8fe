"""Columns and keys of a table's definition that are there twice, or not at all.

Errors are predicted only for tables of which all is known. Values in the rows of a table are not looked for:
engines differ in what they do with them.

Source: sql_table.cc `mysql_prepare_alter_table`, `mysql_prepare_create_table` of MariaDB 10.11 and MySQL 9.7, in
whose order things are looked at; measured, tests/vectors/errors.txt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from binlane.statements.policy.refusals import Refusal, refusal
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.column_expressions import plain_names
from binlane.statements.predicted_errors.prediction import PredictedError
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.foreign_keys import asked_name
from binlane.statements.sql.schema import Key, Table
from binlane.statements.sql.table_changes import (
    FOREIGN_KEY_ENGINES,
    PRIMARY,
    KeyNames,
    column_keys,
    has_key,
    key_of,
    named_engine,
    without_key,
)
from binlane.statements.sql.tree.definitions import (
    AlterAction,
    AlterTable,
    CreateIndex,
    CreateTable,
    DefinedColumn,
    DropIndex,
    KeyDefinition,
    TableOption,
)
from binlane.statements.sql.tree.expressions import Expression

_ANY_PART_COUNTS: Final = frozenset(("MYISAM", "ARIA", "BLACKHOLE"))
"""Engines that count within the other columns of a key."""
_WITHOUT_COUNTING: Final = frozenset(("CSV", "SEQUENCE"))
_DROPS: Final = {
    "DROP COLUMN": "COLUMN",
    "DROP KEY": "INDEX",
    "DROP PRIMARY KEY": "INDEX",
    "DROP FOREIGN KEY": "FOREIGN KEY",
    "DROP CONSTRAINT": "CONSTRAINT",
}
_CHANGES: Final = frozenset(("MODIFY COLUMN", "CHANGE COLUMN", "RENAME COLUMN"))
_MADE_UP: Final = "_ibfk_"
"""In the name that the servers give a foreign key."""
Disallowed = Callable[[Expression], int | None]


@dataclass(slots=True)
class _Definition:
    """A table as it is to be.

    Attributes:
        columns: Names in order, with whether they are AUTO_INCREMENT.
        keys: Those that are there first; the empty name is made up.
        engine: Name of the engine in capitals.
        hidden: Columns that stand in no list, in small letters.
        is_open: There are more columns, which are not known.
        asked: Keys that the statement asks for.
    """

    columns: list[tuple[str, bool]]
    keys: list[Key] = field(default_factory=list)
    engine: str = "INNODB"
    hidden: frozenset[str] = frozenset()
    is_open: bool = False
    asked: list[KeyDefinition] = field(default_factory=list)


def wrong_structure(
    facts: StatementFacts,
    table: Table | None,
    *,
    server: Server,
    engine: str = "INNODB",
    selected: Sequence[str] | None = (),
    disallowed: Disallowed = lambda _: None,
) -> Refusal | None:
    """The error of a statement that defines a table; None if none is sure.

    Args:
        facts: Of CREATE TABLE, ALTER TABLE, CREATE INDEX, DROP INDEX.
        table: As it was; None for CREATE TABLE.
        server: Server whose texts of errors are given.
        engine: Of a table that names none.
        selected: The columns that its query gives a new table; None: they are not known.
        disallowed: Finds the error of an expression for what no key may be made of.
    """
    try:
        tree = facts.tree
        if isinstance(tree, CreateTable):
            _check(_created(tree, facts, engine, selected), server, disallowed)
        elif table is None or not table.is_complete or not table.definition.columns:
            return None
        elif isinstance(tree, AlterTable):
            _check(_Alteration(tree, facts, table, server).definition(), server, disallowed)
        elif isinstance(tree, CreateIndex):
            _check(_indexed(tree, facts, table), server, disallowed)
        elif isinstance(tree, DropIndex) and not tree.if_exists:
            _check(_unindexed(tree, table, server), server, disallowed)
    except PredictedError as wrong:
        return wrong.error
    return None


def _definition_of(table: Table) -> _Definition:
    hidden = {"row_start", "row_end"} if table.definition.is_versioned else set()
    columns = [(column.name, column.is_auto_increment) for column in table.definition.columns]
    names = {name.lower() for name, _ in columns}
    return _Definition(
        columns,
        # Behind its columns a key may have a period.
        [
            replace(key, columns=tuple(one if one.lower() in names else "" for one in key.columns))
            for key in table.keys
        ],
        engine=table.engine,
        hidden=frozenset(hidden),
    )


def _created(
    tree: CreateTable, facts: StatementFacts, engine: str, selected: Sequence[str] | None
) -> _Definition:
    columns = [one for one in tree.elements if isinstance(one, DefinedColumn)]
    given = {name.lower() for name in selected or ()}
    made = _Definition(
        [_column(one) for one in columns if one.name.lower() not in given],
        engine=named_engine(tree.options) or engine,
        hidden=_hidden(tree.options),
        is_open=selected is None,
    )
    own = {one.name.lower(): one for one in columns}
    if selected is None or len({one.name.lower() for one in columns}) < len(columns):
        made.columns = [_column(one) for one in columns]
    for name in selected or ():
        column = own.get(name.lower())
        made.columns.append((name, column is not None and column.is_auto_increment))
    for one in tree.elements:
        if isinstance(one, DefinedColumn):
            made.keys += column_keys([one])
        elif isinstance(one, KeyDefinition):
            _add_key(made, one, facts)
    return made


def _hidden(options: Iterable[TableOption]) -> frozenset[str]:
    is_versioned = any(option.name == "WITH SYSTEM VERSIONING" for option in options)
    return frozenset(("row_start", "row_end")) if is_versioned else frozenset()


def _column(node: DefinedColumn) -> tuple[str, bool]:
    return node.name, node.is_auto_increment


def _add_key(made: _Definition, node: KeyDefinition, facts: StatementFacts) -> None:
    name = node.name or node.constraint
    if name.upper() == PRIMARY and node.kind not in (PRIMARY, "FOREIGN"):
        raise PredictedError(refusal(1280, name))
    if node.kind != "FOREIGN":
        made.asked.append(node)
        key = key_of(node, facts)
        is_plain = not node.parts[-1].is_period
        made.keys.append(key if is_plain else replace(key, columns=key.columns[:-1]))
        return
    assert node.references is not None, "the grammar demands it"
    name = node.constraint or node.name
    columns = tuple(part.column for part in node.parts)
    made.keys.append(Key(name=name, columns=columns, parts=(_FOR_REFERENCE,)))


_FOR_REFERENCE: Final = "FOREIGN KEY"


def _indexed(tree: CreateIndex, facts: StatementFacts, table: Table) -> _Definition:
    made = _definition_of(table)
    if tree.key.if_not_exists and has_key(made.keys, tree.key.name):
        return made
    if "OR REPLACE" in tree.words:
        made.keys = without_key(made.keys, tree.key.name)
    _add_key(made, tree.key, facts)
    return made


def _unindexed(tree: DropIndex, table: Table, server: Server) -> _Definition:
    made = _definition_of(table)
    if not has_key(made.keys, tree.name):
        raise PredictedError(refusal(1091, "INDEX", tree.name, server=server))
    made.keys = without_key(made.keys, tree.name)
    return made


class _Alteration:
    """An ALTER TABLE: what it asks for is taken off lists, and what is left of them is wrong."""

    def __init__(
        self, tree: AlterTable, facts: StatementFacts, table: Table, server: Server
    ) -> None:
        self._facts = facts
        self._table = table
        self._server = server
        self._names = {column.name.lower() for column in table.definition.columns}
        self._keys = {key.name.lower() for key in table.keys}
        self._actions = [action for action in tree.actions if not self._is_needless(action)]
        self._dropped_checks: set[str] = set()
        # In the order of the text.
        self._left: dict[AlterAction, None] = dict.fromkeys(self._actions)
        self._meaning: dict[tuple[str, str], deque[AlterAction]] = {}
        for action in self._actions:
            meant = (action.kind, (action.name or PRIMARY).lower())
            self._meaning.setdefault(meant, deque()).append(action)

    def _is_needless(self, action: AlterAction) -> bool:
        """Return True if MariaDB leaves out an action because of its IF EXISTS or IF NOT EXISTS."""
        if not action.if_exists:
            return False
        name = action.name.lower()
        if action.kind == "ADD COLUMN":
            return all(column.name.lower() in self._names for column in action.columns)
        if action.kind == "ADD KEY" and action.key is not None:
            return asked_name(action.key).lower() in self._keys
        if action.kind in ("DROP KEY", "RENAME KEY", "ALTER KEY"):
            return name not in self._keys
        if action.kind in ("DROP FOREIGN KEY", "DROP CONSTRAINT"):
            return True  # it is no error, whatever there is
        return name not in self._names

    def _take(self, name: str, *kinds: str) -> AlterAction | None:
        """Take the first action of some kinds that means a name off the list."""
        found = [one for kind in kinds if (one := self._meaning.get((kind, name.lower())))]
        if not found:
            return None
        action = min(found, key=lambda one: one[0].at).popleft()
        del self._left[action]
        return action

    def definition(self) -> _Definition:
        made = _definition_of(self._table)
        options = [one.option for one in self._actions if one.option is not None]
        made.engine = named_engine(options) or made.engine
        changed = self._change_columns(made)
        if not made.columns:
            raise PredictedError(refusal(1090))
        if not self._server.is_mariadb:
            self._look_at_storage()
        self._change_keys(made, changed)
        for action in self._left:
            self._look_at_drop(action)
        for action in self._left:
            if action.kind in ("RENAME KEY", "ALTER KEY"):
                raise PredictedError(refusal(1176, action.name, self._table.name.table))
        for action in self._actions:
            for column in action.columns:
                made.keys += column_keys([column])
            for key in (*action.keys, *([action.key] if action.key is not None else [])):
                _add_key(made, key, self._facts)
        return made

    def _look_at_storage(self) -> None:
        """MySQL makes no column virtual whose values are stored, nor the other way round."""
        known = {column.name.lower(): column for column in self._table.definition.columns}
        for action in self._actions:
            if action.kind not in ("MODIFY COLUMN", "CHANGE COLUMN"):
                continue
            old, new = known.get(action.name.lower()), action.columns[0]
            is_virtual = new.generated is not None and new.storage in ("", "VIRTUAL")
            if old is not None and is_virtual is not (old.is_generated and not old.is_stored):
                raise PredictedError(refusal(3106, "Changing the STORED status"))

    def _change_columns(self, made: _Definition) -> dict[str, str | None]:
        """Do what is done to columns; their new names by the old ones, None of those that go."""
        columns: list[tuple[str, bool]] = []
        changed: dict[str, str | None] = {}
        later: list[AlterAction] = []
        for name, is_counting in made.columns:
            if self._take(name, "DROP COLUMN") is not None:
                changed[name.lower()] = None
                continue
            action = self._take(name, *_CHANGES)
            if action is None:
                self._take(name, "ALTER COLUMN")
                columns.append((name, is_counting))
                continue
            new = action.columns[0].name if action.columns else action.new_name
            changed[name.lower()] = new
            if action.position:
                later.append(action)
            else:
                columns += [*map(_column, action.columns)] or [(new, is_counting)]
        for action in self._actions:
            is_lost = action in self._left
            if is_lost and action.kind in _CHANGES and not self._changes_added(columns, action):
                raise self._unknown(action.name)
            if action.kind == "ADD COLUMN" or action in later:
                self._place(columns, action)
        for action in self._left:
            if action.kind == "ALTER COLUMN" and not self._has_added(columns, action.name):
                raise self._unknown(action.name)
        made.columns = columns
        return changed

    def _changes_added(self, columns: list[tuple[str, bool]], action: AlterAction) -> bool:
        """Take away the column that MariaDB puts another in place of: one that was added before."""
        new = action.columns[0].name if action.columns else ""
        if not self._has_added(columns, new):
            return False
        columns[:] = [one for one in columns if one[0].lower() != new.lower()]
        columns += map(_column, action.columns)
        return True

    def _has_added(self, columns: Iterable[tuple[str, bool]], name: str) -> bool:
        """Return True if MariaDB finds a column among those that the statement has added so far."""
        return (
            self._server.is_mariadb
            and name.lower() not in self._names
            and any(one.lower() == name.lower() for one, _ in columns)
        )

    def _place(self, columns: list[tuple[str, bool]], action: AlterAction) -> None:
        place = len(columns)
        if action.position == "FIRST":
            place = 0
        elif action.after:
            names = [name.lower() for name, _ in columns]
            if action.after.lower() not in names:
                raise self._unknown(action.after)
            place = names.index(action.after.lower()) + 1
        is_tolerant = action.kind == "ADD COLUMN" and action.if_exists
        columns[place:place] = [
            _column(column)
            for column in action.columns
            if not (is_tolerant and column.name.lower() in self._names)
        ]

    def _change_keys(self, made: _Definition, changed: dict[str, str | None]) -> None:
        keys = []
        for key in made.keys:
            if self._take(key.name, "DROP KEY", "DROP CONSTRAINT", "DROP PRIMARY KEY"):
                continue
            action = self._take(key.name, "RENAME KEY")
            self._take(key.name, "ALTER KEY")
            columns = [changed.get(one.lower(), one) for one in key.columns]
            kept = tuple(one for one in columns if one is not None)
            if not kept:
                continue
            if self._server.is_mariadb and key.is_unique and len(kept) < len(columns):
                gone = next(one for one, new in zip(key.columns, columns, strict=True) if not new)
                raise PredictedError(refusal(1072, gone))
            name = key.name if action is None else action.new_name
            if action is not None and name.upper() == PRIMARY:
                raise PredictedError(refusal(1280, name))
            keys.append(replace(key, name=name, columns=kept))
        made.keys = keys

    def _look_at_drop(self, action: AlterAction) -> None:
        """Raise if a DROP names nothing, as far as all is known that it can name."""
        what = _DROPS.get(action.kind)
        if what is None:
            return
        references = [one.own_name.lower() for one in self._table.foreign_keys]
        may_be_reference = action.name.lower() in references or (
            # MariaDB numbers anew what is altered and renamed at once.
            "" in references and _MADE_UP in action.name
        )
        if what in ("FOREIGN KEY", "CONSTRAINT") and may_be_reference:
            return
        is_kept_nowhere = self._table.engine.upper() not in FOREIGN_KEY_ENGINES
        if what == "FOREIGN KEY" and is_kept_nowhere and not self._server.is_mariadb:
            return  # MySQL leaves it to the engine, which has none
        if what == "CONSTRAINT":
            if self._take_check(action.name.lower()):
                return
            if not self._server.is_mariadb:
                raise PredictedError(refusal(3940, action.name))
        raise PredictedError(refusal(1091, what, action.name or PRIMARY, server=self._server))

    def _take_check(self, name: str) -> bool:
        """Look for a check of that name, which MariaDB drops once."""
        is_there = any(one.name.lower() == name for one in self._table.check_names)
        is_again = is_there and name in self._dropped_checks
        self._dropped_checks.add(name)
        return is_there and not (is_again and self._server.is_mariadb)

    def _unknown(self, column: str) -> PredictedError:
        return PredictedError(refusal(1054, column, self._table.name.table))


# The whole ----------------------------------------------------------------------------------------


def _check(made: _Definition, server: Server, disallowed: Disallowed) -> None:
    """Check a table as the servers do when they put it together, in their order."""
    names = {*made.hidden}
    for name, _ in made.columns:
        if name.lower() in names:
            raise PredictedError(refusal(1060, name))
        names.add(name.lower())
    if not server.is_mariadb:
        for asked in made.asked:
            _look_at_expressions(asked, None if made.is_open else names, disallowed)
    counting = [name.lower() for name, is_counting in made.columns if is_counting]
    if len(counting) > 1:
        raise PredictedError(refusal(1075))
    looks: list[Callable[[Key], None]] = [
        partial(_look_at_name, taken=KeyNames()),
        partial(_look_for_columns, names=None if made.is_open else names),
        _look_for_columns_twice,
    ]
    if server.is_mariadb:
        order = [(look, key) for look in (looks[1], looks[0], looks[2]) for key in made.keys]
    else:
        order = [(look, key) for key in made.keys for look in looks]
    for look, key in order:
        look(key)
    if counting and made.engine not in _WITHOUT_COUNTING:
        width = None if made.engine in _ANY_PART_COUNTS else 1
        if not any(counting[0] in lowered(key.columns[:width]) for key in made.keys):
            raise PredictedError(refusal(1075))


def _look_at_expressions(
    key: KeyDefinition, names: set[str] | None, disallowed: Disallowed
) -> None:
    """MySQL makes columns of a key's expressions before it looks at any key.

    Source: measured on MySQL 9.7.4.
    """
    shown = key.name or "functional_index"
    for part in key.parts:
        if part.expression is None:
            continue
        if key.kind == "PRIMARY":
            raise PredictedError(refusal(3756))
        errno = disallowed(part.expression)
        if errno is not None:
            raise PredictedError(refusal(errno, shown))
        for name in plain_names(part.expression):
            if names is not None and name.parts[0].lower() not in names:
                raise PredictedError(refusal(1054, name.parts[0], "functional index"))
        if key.kind == "FULLTEXT":
            raise PredictedError(refusal(3759))


def lowered(names: Iterable[str]) -> Iterator[str]:
    """Give names in small letters."""
    return (name.lower() for name in names)


def _look_for_columns(key: Key, names: set[str] | None) -> None:
    for column in key.columns:
        if column and names is not None and column.lower() not in names:
            raise PredictedError(refusal(1072, column))


def _look_for_columns_twice(key: Key) -> None:
    seen: set[str] = set()
    for column in filter(None, key.columns):
        if column.lower() in seen:
            raise PredictedError(refusal(1060, column))
        seen.add(column.lower())


def _look_at_name(key: Key, taken: KeyNames) -> None:
    """Raise if a key of that name stands before this one; a foreign key's own may come to nothing."""
    if key.parts == (_FOR_REFERENCE,):
        return
    name = key.name
    if key.is_primary and PRIMARY in taken:
        raise PredictedError(refusal(1068))
    if name in taken:
        raise PredictedError(refusal(1061, name))
    taken.named(key)
