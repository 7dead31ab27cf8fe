"""Everything that the text of one statement tells about how it is logged.

Values only: `reading.read` makes them. `StatementEffects` says which objects a statement is about;
what stands beside it is what the servers look at when they decide between statement and row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeVar

from binlane.names import TableName
from binlane.statements.sql.servers import ANY, Dialect
from binlane.statements.sql.statement_kinds import (
    OF_THEIR_OWN,
    TABLE_MAKING_KINDS,
    VIEW_KINDS,
    StatementKind,
)
from binlane.statements.sql.tokens import SqlSyntaxError, Token
from binlane.statements.sql.tree.expressions import Expression, Node
from binlane.statements.sql.tree.statements import Empty


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementEffects:
    """Effects of a statement on named objects, by its text alone.

    Tuples are in the order of the text, without repetition; writes of a body come before its reads.
    A name without a database got the default database, which is empty where there is none.

    Attributes:
        writes: Tables and sequences changed, created or dropped. For a RENAME: names with another
            table or content afterwards; a name that lives only within the statement is left out.
        reads: Other tables that the statement names: read, referred to by a foreign key, or used in
            the body of a view, trigger, routine or event.
        databases: Databases changed as such: created, altered, dropped, or getting or losing a
            view, routine, event or account (`mysql`).
        objects: Views, triggers, routines and events created, altered or dropped.
        calls: Procedures called, and functions called with their database. Functions without a
            database cannot be told from built-in ones by the text.
        renames: Old and new names, pair after pair as the server renames them.
        drops: Those of `writes` that are gone afterwards.
        is_temporary: True if the statement says TEMPORARY.
        is_or_replace: True if the statement says OR REPLACE.
        if_exists: True if the statement says IF EXISTS or IF NOT EXISTS.
        stopped_at: Token at which the analysis stopped; then everything above is only the part
            found before. None if all was understood.
    """

    kind: StatementKind
    writes: tuple[TableName, ...] = ()
    reads: tuple[TableName, ...] = ()
    databases: tuple[str, ...] = ()
    objects: tuple[TableName, ...] = ()
    calls: tuple[TableName, ...] = ()
    renames: tuple[tuple[TableName, TableName], ...] = ()
    drops: tuple[TableName, ...] = ()
    is_temporary: bool = False
    is_or_replace: bool = False
    if_exists: bool = False
    stopped_at: Token | None = None

    @property
    def made(self) -> TableName | None:
        """The table, sequence or view that the statement makes; ALTER VIEW makes one anew."""
        if self.kind in VIEW_KINDS:
            return None if self.kind is StatementKind.DROP_VIEW else next(iter(self.objects), None)
        return next(iter(self.writes), None) if self.kind in TABLE_MAKING_KINDS else None

    @property
    def dropped_databases(self) -> tuple[str, ...]:
        """Databases of which nothing is left that was there before: CREATE OR REPLACE drops, too."""
        is_replaced = self.is_or_replace and self.kind is StatementKind.CREATE_DATABASE
        return self.databases if is_replaced or self.kind is StatementKind.DROP_DATABASE else ()

    @property
    def changed_tables(self) -> frozenset[TableName]:
        """`writes`, and the names that tables have only within a RENAME."""
        return frozenset(self.writes).union(*self.renames)

    @property
    def renamed_tables(self) -> tuple[TableName, ...]:
        """The tables that a rename is about: old names that it did not itself make before.

        Source: WL#40, 4.2: add t_i only if t_i != s_j for all j < i.
        """
        made: set[TableName] = set()
        found: list[TableName] = []
        for old, new in self.renames:
            if old not in made:
                found.append(old)
            made.add(new)
        return tuple(found)

    @property
    def involved_tables(self) -> tuple[TableName, ...]:
        """The tables that a statement concerns, as tables info has them: what it writes comes first.

        A rename gives the names left of TO that it did not make itself; a statement that makes or
        alters a table gives that one alone. Views count where the statement is about them, or uses
        them.

        Source: WL#40, section 4.
        """
        if self.renames:
            return self.renamed_tables
        if self.kind in OF_THEIR_OWN:
            return self.writes
        objects = self.objects if self.kind in VIEW_KINDS else ()
        return (*objects, *self.writes, *self.reads)

    @property
    def referred_tables(self) -> tuple[TableName, ...]:
        """Tables that a table's definition refers to, which are none of the statement's own."""
        return self.reads if self.kind in OF_THEIR_OWN else ()

    @property
    def net_renames(self) -> tuple[tuple[TableName, TableName], ...]:
        """First and last name of each table renamed, names in between left out.

        `t1 TO tmp, t2 TO t1, tmp TO t2` gives t1 to t2 and t2 to t1.
        """
        first_names: dict[TableName, TableName] = {}
        for old, new in self.renames:
            first_names[new] = first_names.pop(old, old)
        return tuple((first, last) for last, first in first_names.items() if first != last)


_NOTHING = Empty(0, 0)


class RowChange(Enum):
    """Kind of a statement's change to rows of one table."""

    __hash__ = object.__hash__  # members are unique; Enum's own is no C function

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    REPLACE = "replace"
    """Insert, or delete and insert."""
    UPSERT = "insert … on duplicate key update"
    LOAD = "load data"
    SEQUENCE = "next value"
    """The one row of a sequence is advanced or set: NEXTVAL, NEXT VALUE FOR, SETVAL."""


class VariableScope(Enum):
    """Scope of the value of a system variable: session, global or persisted."""

    UNSAID = ""
    SESSION = "session"
    GLOBAL = "global"
    PERSIST = "persist"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUse:
    """A place where the text names a table, view or sequence; common table expressions are none.

    Attributes:
        name: Name with the default database where the text gives none.
        alias: Name by which the statement calls the table: its alias, else the table's own name.
        changes: Changes of the table's rows; empty if it is only read. In an UPDATE of several
            tables that sets a column without its table, every table that could have the column has
            UPDATE: which one does (`set_columns`) only the server's objects tell.
        offset: Place where the name begins, in characters from 0.
        length: Length of the name in the text, its database included.
        is_outermost: True if the name stands in the statement itself, not in a subquery.
        is_sequence: NEXTVAL, LASTVAL or SETVAL or their like in MariaDB name it.
        is_locked_for_update: FOR UPDATE of its SELECT, not FOR SHARE, means it.
        lock: `READ`, `READ LOCAL`, `WRITE`, … of LOCK TABLES; else empty.
    """

    name: TableName
    alias: str
    changes: frozenset[RowChange] = frozenset()
    offset: int
    length: int
    is_outermost: bool = True
    is_sequence: bool = False
    is_locked_for_update: bool = False
    lock: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionUse:
    """A call of a function, built in, stored or loadable; of a procedure in CALL.

    Also what is one without parentheses: CURRENT_USER, CURRENT_ROLE, NEXT VALUE FOR (as NEXTVAL),
    PREVIOUS VALUE FOR (as LASTVAL), JSON_TABLE.

    Attributes:
        name: Name in the case of the text.
        database: Database, if the text gives one.
        arguments: Arguments in the order of the text.
        offset: Place where the call begins.
        length: Length of the call up to its closing parenthesis.
        is_quoted: True if the name stands in quotes: then no built-in function is meant.
    """

    name: str
    database: str | None = None
    arguments: tuple[Expression, ...] = field(default=(), compare=False, repr=False)
    offset: int
    length: int
    is_quoted: bool = False

    @property
    def upper_name(self) -> str:
        """The name in capitals, as the lists of functions have it."""
        return self.name.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemVariableUse:
    """`@@name` in an expression. `name` is in lower case, without a scope or component's quotes."""

    name: str
    scope: VariableScope
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UserVariableUse:
    """`@name`; `is_assigned` where `:=` or INTO follows. Names are in lower case."""

    name: str
    is_assigned: bool
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """LIMIT, FETCH FIRST or LIMIT ROWS EXAMINED, anywhere; `is_zero` for the constant LIMIT 0."""

    offset: int
    length: int
    is_zero: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableAssignment:
    """One assignment of a SET statement.

    Attributes:
        name: Name in lower case: a system variable, a user variable (with its `@`), or `names`,
            `character set`, `password`, `role`, `transaction isolation level`,
            `transaction access mode` for the special forms; of a SET in a routine a local variable.
        scope: Scope of a system variable. SET TRANSACTION without a scope is UNSAID: the next one
            only.
        node: The value; None for DEFAULT and words.
        value: Text of the value; for `transaction isolation level` such as `READ COMMITTED`;
            `default`.
    """

    name: str
    scope: VariableScope
    value: str
    node: Expression | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetColumn:
    """A column that UPDATE, or ON DUPLICATE KEY UPDATE, or INSERT … SET sets."""

    qualifier: str | None
    name: str


@dataclass(frozen=True, kw_only=True)
class StatementFacts:
    """Facts that a statement's text tells.

    Attributes:
        effects: Effects on objects, as `analyse` gives them; `stopped_at` in it says that the text
            was not understood, and then nothing here may be taken for whole.
        tree: Statement behind SET STATEMENT … FOR; for statements of one shape that of the first of
            them.
        whole: Statement with SET STATEMENT … FOR around it.
        text: Text of the statement itself.
        dialect: Dialect in which the text was read.
        verb: First words in capitals, without comments, as many as name the command: `INSERT`,
            `CREATE TABLE`, `SHOW BINLOG EVENTS`, `XA PREPARE`, `LOCK TABLES`, …
        tables: Every table named, in the order of the text.
        functions: Every function called, in the order of the text, bodies of CREATE left out.
        body_functions: Functions called in the body of a view, routine, trigger or event.
        system_variables: System variables read in expressions; those that SET assigns to are left
            out.
        user_variables: User variables read or assigned in expressions.
        limits: All LIMIT clauses in the text.
        skip_locked: Offset of SKIP LOCKED; None without.
        nowait: Offset of NOWAIT in a locking read; None without.
        is_replace: True for REPLACE, also for CREATE TABLE … REPLACE SELECT, but never for OR
            REPLACE.
        is_delayed: True for INSERT DELAYED and REPLACE DELAYED.
        on_duplicate_offset: Place where ON DUPLICATE KEY UPDATE begins; None without.
        has_query: INSERT, REPLACE or CREATE TABLE takes its rows from a query.
        is_multi_table: UPDATE or DELETE in the form for several tables.
        has_where: UPDATE or DELETE has a WHERE clause.
        has_into: SELECT … INTO, of any kind.
        is_local: NO_WRITE_TO_BINLOG or LOCAL of maintenance and FLUSH; LOCAL of LOAD DATA.
        columns: Columns that INSERT, REPLACE or LOAD DATA names (INSERT … SET too); None if it
            names none, which means all.
        row_count: Number of rows in VALUES; 0 without VALUES.
        defaults: True if DEFAULT stands as a value somewhere; the column positions of VALUES are
            not told.
        set_columns: Columns that UPDATE or ON DUPLICATE KEY UPDATE sets.
        assignments: Assignments of a SET statement.
        statement_assignments: Assignments of SET STATEMENT … FOR before this statement.
        name: Name in PREPARE, EXECUTE, DEALLOCATE, SAVEPOINT, ROLLBACK TO, RELEASE, HANDLER, USE.
        options: Words that a command adds: `AND CHAIN`, `RELEASE`, `WITH CONSISTENT SNAPSHOT`,
            `READ ONLY`, `ONE PHASE`, `CASCADE` …
        engine: Engine of CREATE TABLE or ALTER TABLE … ENGINE, in capitals; None if they name none.
        query_offset: Place where the query of INSERT or CREATE … SELECT begins; None without.
        body_offset: Place where the body of a routine, trigger, event or view begins; None without.
        shape: Facts in common with statements that differ from this one only in literals; None
            where that is not known.
        shift: Moves the places of `shape.facts` to those named here; None if they are the same.
        literals: Moves all places of the tree likewise.
        error: Error that every server of the dialect answers; None where one may take the
            statement.
        too_much: Excess because of which the text was not understood, if it is deeper or longer
            than is analysed; else empty.
    """

    effects: StatementEffects
    tree: Node = field(default=_NOTHING, compare=False, repr=False)
    whole: Node = field(default=_NOTHING, compare=False, repr=False)
    text: str = field(default="", compare=False, repr=False)
    dialect: Dialect = field(default=ANY, compare=False, repr=False)
    verb: str = ""
    tables: tuple[TableUse, ...] = ()
    functions: tuple[FunctionUse, ...] = ()
    body_functions: tuple[FunctionUse, ...] = ()
    system_variables: tuple[SystemVariableUse, ...] = ()
    user_variables: tuple[UserVariableUse, ...] = ()
    limits: tuple[LimitUse, ...] = ()
    skip_locked: int | None = None
    nowait: int | None = None
    is_ignore: bool = False
    is_replace: bool = False
    is_delayed: bool = False
    is_on_duplicate: bool = False
    on_duplicate_offset: int | None = None
    has_query: bool = False
    is_multi_table: bool = False
    has_where: bool = False
    has_returning: bool = False
    has_into: bool = False
    is_local: bool = False
    columns: tuple[str, ...] | None = None
    row_count: int = 0
    defaults: bool = False
    set_columns: tuple[SetColumn, ...] = ()
    assignments: tuple[VariableAssignment, ...] = ()
    statement_assignments: tuple[VariableAssignment, ...] = ()
    name: str = ""
    options: frozenset[str] = frozenset()
    engine: str | None = None
    query_offset: int | None = None
    body_offset: int | None = None
    shape: Shape | None = field(default=None, compare=False, repr=False)
    shift: Shift | None = field(default=None, compare=False, repr=False)
    literals: Shift | None = field(default=None, compare=False, repr=False)
    error: SqlSyntaxError | None = field(default=None, compare=False, repr=False)
    too_much: str = ""

    def place(self, offset: int) -> int:
        """Give the place in this statement's text of a place of the tree."""
        return offset if self.literals is None else self.literals(offset)

    def text_of(self, node: Node) -> str:
        """The text of a node in this statement."""
        literals = self.literals
        if literals is None:
            return self.text[node.at : node.end]
        return self.text[literals(node.at) : literals(node.end)]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """A fact that is made when it is asked for: of another statement of a known shape."""
            if name in _SHIFTS:
                self.__dict__["shift"], self.__dict__["literals"] = self.shape.shifts(self.text)
            elif name in _PLACES:
                self.__dict__[name] = _made(self, name)
            else:
                raise AttributeError(name)
            return self.__dict__[name]


class Shift:
    """Moves places of one statement to those of another that differs from it only in literals."""

    __slots__ = ("_ends", "_new_ends")

    def __init__(self, ends: Sequence[int], new_ends: Sequence[int]) -> None:
        """Take the places where the literals of both end."""
        self._ends = ends
        self._new_ends = new_ends

    def __call__(self, place: int) -> int:
        """Give the place in the other statement of one that stands in no literal, or before one."""
        before = bisect_right(self._ends, place)
        return place + self._new_ends[before - 1] - self._ends[before - 1] if before else place

    def leaves(self, last: int) -> bool:
        """True if nothing up to a place is moved."""
        before = bisect_right(self._ends, last)
        return self._ends[:before] == self._new_ends[:before]


class Shape:
    """Common facts of statements that differ only in their literals.

    Attributes:
        facts: Facts of the first of these statements.
        ends: Places where the literals of that statement end.
    """

    __slots__ = ("_common", "_ends_of", "_last", "ends", "facts")

    def __init__(
        self, facts: StatementFacts, ends: Sequence[int], ends_of: Callable[[str], Sequence[int]]
    ) -> None:
        """Take the facts of the shape's first statement.

        Args:
            facts: Facts that have no shape yet.
            ends: Places where the literals of their statement end.
            ends_of: Gives the same places of another statement of the shape.
        """
        self.facts = replace(facts, shape=self)
        self.ends = ends
        self._ends_of = ends_of
        self._common = {
            name: value
            for name, value in vars(self.facts).items()
            if name not in _SHIFTS and (name not in _PLACES or not value)
        }
        self._last = _last_place(facts)

    def facts_of(self, text: str) -> StatementFacts:
        """The facts of another statement of this shape; where it has what is found when asked."""
        found = self._common.copy()
        found["text"] = text
        facts = object.__new__(StatementFacts)
        object.__setattr__(facts, "__dict__", found)
        return facts

    def shifts(self, text: str) -> tuple[Shift | None, Shift | None]:
        """The `shift` and the `literals` of such facts."""
        ends = self._ends_of(text)
        if ends == self.ends:
            return None, None
        shift = Shift(self.ends, ends)
        return None if shift.leaves(self._last) else shift, shift


_USES: Final = ("tables", "functions", "system_variables", "user_variables", "limits")
_OFFSETS: Final = (
    "on_duplicate_offset",
    "query_offset",
    "skip_locked",
    "nowait",
    "body_offset",
)
_PLACES: Final = frozenset((*_USES, *_OFFSETS))
_SHIFTS: Final = ("shift", "literals")


for _name in (*_PLACES, *_SHIFTS):
    delattr(StatementFacts, _name)  # the default, which would hide that it is still to be made


def _last_place(facts: StatementFacts) -> int:
    """The last place that facts name."""
    uses = [use for name in _USES for use in getattr(facts, name)]
    places = [getattr(facts, name) for name in _OFFSETS]
    return max(
        (
            *(use.offset + use.length for use in uses),
            *(place for place in places if place is not None),
        ),
        default=0,
    )


def _made(facts: StatementFacts, name: str) -> object:
    """A fact of a statement out of that of the first statement of its shape."""
    assert facts.shape is not None  # or it has all of them
    known = getattr(facts.shape.facts, name)
    if facts.shift is None:
        return known
    if name in _OFFSETS:
        return facts.place(known)
    return tuple([_moved(use, facts) for use in known])


_Use = TypeVar("_Use", TableUse, FunctionUse, SystemVariableUse, UserVariableUse, LimitUse)


def _moved(use: _Use, facts: StatementFacts) -> _Use:
    offset = facts.place(use.offset)
    length = facts.place(use.offset + use.length) - offset
    if offset == use.offset and length == use.length:
        return use
    return replace(use, offset=offset, length=length)
