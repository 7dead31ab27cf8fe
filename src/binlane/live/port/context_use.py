"""A statement's use of its session's context, which decides what is logged with it.

The servers note while they run a statement that it asked for the time zone or for the microseconds of
its start. Here that is told by the statement's text, its tables and the programs and views behind them: never
too little; the time zone may be told of a statement that turns out not to ask for it, such as a query whose
rows have no time.

Measured on MariaDB 10.11, 11.8 and MySQL 9.7, by their logs in STATEMENT format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from binlane.live.port.time_use import ROW_START, times_of_columns, times_of_functions
from binlane.log.codec.client_text import is_alike, text_telling
from binlane.names import TableName
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.policy.server import Server
from binlane.statements.policy.unsafe_defaults import default_facts
from binlane.statements.policy.used_objects import body_use
from binlane.statements.programs.environment import SessionEnvironment
from binlane.statements.programs.routines import trimmed
from binlane.statements.session.session import Session
from binlane.statements.sql.evaluation.evaluator import evaluate
from binlane.statements.sql.evaluation.values import Text
from binlane.statements.sql.executable_comments import server_text
from binlane.statements.sql.facts import (
    FunctionUse,
    RowChange,
    Shape,
    StatementFacts,
    VariableScope,
)
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.reading import read
from binlane.statements.sql.schema import Routine, Trigger
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import CREATE_TABLE_KINDS, StatementKind
from binlane.statements.sql.tokens import SqlSyntaxError, TokenKind, quoted_name, tokenise
from binlane.statements.sql.tree.definitions import CreateTable, DefinedColumn
from binlane.statements.sql.tree.expressions import Literal, UserVariable
from binlane.statements.sql.tree.statements import Prepare

DATABASES_MAX: Final = 16
_DIAGNOSTIC_FUNCTIONS: Final = frozenset(("ROW_COUNT", "FOUND_ROWS"))
_DIAGNOSTIC_VARIABLES: Final = frozenset(("warning_count", "error_count"))
_THREAD_FUNCTIONS: Final = frozenset(("CONNECTION_ID",))
_PROGRAM_KINDS: Final = frozenset(
    (
        *(StatementKind.CALL, StatementKind.COMPOUND, StatementKind.EXECUTE),
        StatementKind.EXECUTE_IMMEDIATE,
    )
)
_ADDED_TO_WHILE_READ: Final = frozenset(("MYISAM", "ARIA", "MRG_MYISAM"))
_EXECUTING: Final = (StatementKind.EXECUTE, StatementKind.EXECUTE_IMMEDIATE)
_INSERTING: Final = frozenset((StatementKind.INSERT, StatementKind.REPLACE))
_CHANGING: Final = frozenset((*_INSERTING, StatementKind.UPDATE, StatementKind.DELETE))
_VIEWS_MAX: Final = 64
_LOGS_COLLATIONS: Final = (11, 2, 1)
"""The first MariaDB that logs default collations of character sets that a statement names."""
_CHARSET_WORDS: Final = frozenset(("CHARSET", "CHARACTER", "USING"))
"""Words before the name of a character set; the last one also stands in joins."""
_OF_PERIOD: Final = (ROW_START, "ROW END")
_LOGGED_VARIABLES: Final = frozenset(
    (
        *("sql_mode", "auto_increment_increment", "auto_increment_offset", "names"),
        *("character_set_client", "character_set_connection", "collation_connection"),
        *("character_set_server", "collation_server", "character_set_database"),
        *("collation_database", "character set", "time_zone", "lc_time_names"),
        *("sql_auto_is_null", "foreign_key_checks", "unique_checks", "check_constraint_checks"),
        *("explicit_defaults_for_timestamp", "sql_if_exists", "timestamp", "rand_seed1"),
        *("rand_seed2", "insert_id", "last_insert_id", "identity", "pseudo_thread_id"),
        *("character_set_collations", "default_collation_for_utf8mb4"),
        "system_versioning_insert_history",
        *("sql_require_primary_key", "default_table_encryption", "enable_cascade_triggers"),
    )
)


class UnlockedReads(NamedTuple):
    """Reads that a source that logs rows leaves open to changes by others, unseen by a text.

    A source that logs statements makes the others wait. Without that, the order of the log is not the order
    in which things were read.

    Attributes:
        has_added_to: True for a read of MyISAM or Aria tables, to which others may add rows.
        has_selected: True for tables that functions of a SELECT read: InnoDB takes no locks there.
        has_others: True for tables that other statements read, which InnoDB locks from REPEATABLE READ on.
    """

    has_added_to: bool = False
    has_selected: bool = False
    has_others: bool = False

    def are_unlocked(self, *, locks_reads: bool) -> bool:
        """True if any read is not kept from changes in a transaction.

        Args:
            locks_reads: True if the isolation level locks the rows that a change only reads.
        """
        return self.has_added_to or self.has_selected or (self.has_others and not locks_reads)


NO_UNLOCKED_READS: Final = UnlockedReads()


class ContextUse(NamedTuple):
    """A statement's use of its context, as far as the context is logged with it.

    Attributes:
        is_known: True if all programs and views behind the statement could be read.
        time_zone: True if the statement may ask for the time zone.
        has_microseconds: True if the server logs the microseconds of the statement's start with it.
        needs_microseconds: True if stored values depend on the microseconds; or on the second, where no rows
            tell it.
        needs_server_time: True if the microseconds must be the source's own: rows of its history are ordered
            by them.
        databases: Databases that the statement writes to, in MySQL's log; None stands for too many, or
            foreign keys.
        updated_tables: Bit set of the UPDATE's tables of which it sets columns.
        is_thread_specific: True if the statement has a meaning in its session's connection only.
        has_cascade_switch: True if MySQL logs with the statement whether cascades fire triggers.
        is_program: True if the statement runs statements that are logged by themselves.
        reads_diagnostics: True if the statement reads what the one before it left, as ROW_COUNT() does.
        changes_session: True if programs in the statement may change variables of the session.
        sets_user_variables: User variables that the statement, or programs in it, may assign.
        variable_names: User variables in small letters, and as they are written.
        may_skip_rows: True if the statement may leave rows out, or change others in their place, because of a
            key.
        creates_table: True if the statement creates a table by its text.
        creates_timestamps: True if the created table has a column of type TIMESTAMP.
        routines: The procedures that CALL runs, directly or not.
        names_charset: True if the statement names a character set, whose default collation MariaDB then logs.
        sets_context: True if the statement sets values for itself, by SET STATEMENT … FOR, that are logged
            with it.
        reads: Reads of a changing statement that are not kept from changes by others.
    """

    is_known: bool = True
    time_zone: bool = False
    has_microseconds: bool = False
    needs_microseconds: bool = False
    needs_server_time: bool = False
    databases: tuple[str, ...] | None = ()
    updated_tables: int = 0
    is_thread_specific: bool = False
    has_cascade_switch: bool = False
    is_program: bool = False
    reads_diagnostics: bool = False
    changes_session: bool = False
    sets_user_variables: frozenset[str] = frozenset()
    variable_names: tuple[tuple[str, str], ...] = ()
    may_skip_rows: bool = False
    creates_table: bool = False
    creates_timestamps: bool = False
    routines: tuple[TableName, ...] = ()
    names_charset: bool = False
    sets_context: bool = False
    reads: UnlockedReads = NO_UNLOCKED_READS


PLAIN: Final = ContextUse()
"""Use of SAVEPOINT and its like."""
Resolve = Callable[[StatementFacts, str], ResolvedStatement]
"""Gives the tables of a statement with its default database."""


def _not_resolved(_facts: StatementFacts, _database: str) -> ResolvedStatement:
    """Fail: the default of `resolve` for a statement that runs no others."""
    raise LookupError("no statements were to be run")


def context_use(
    facts: StatementFacts,
    resolved: ResolvedStatement,
    objects: Objects,
    server: Server,
    database: str = "",
    resolve: Resolve = _not_resolved,
) -> ContextUse:
    """Give a statement's use of its context, as far as the context is logged with it.

    Args:
        facts: Parsed facts of the statement's text.
        resolved: Tables that the statement opens.
        objects: The server's objects, the session's temporary tables among them.
        server: Server whose log holds the statement.
        database: Default database of the statement.
        resolve: Gives the tables of statements that the statement runs.
    """
    found = _Finder(facts, resolved, objects, server, database)
    kind = facts.effects.kind
    flags = [
        *times_of_functions(found.texts, server),
        *times_of_columns(facts, found.views, resolved, server),
    ]
    # The source logs nothing of changes to temporary tables that would tell their time.
    has_no_rows = any(
        access.changes and access.table.is_temporary for access in resolved.accesses
    ) or (facts.effects.is_temporary and facts.has_query)
    databases = {access.name.database for access in resolved.accesses if _is_written(access)}
    databases |= {name.database for name in facts.effects.writes}
    keys = any(_has_foreign_keys(access, objects) for access in resolved.accesses)
    is_update = kind is StatementKind.UPDATE
    needs = any(one.needs_microseconds for one in flags) or (
        # The servers log none with @@timestamp, so that their replicas store another value.
        found.reads_variable("timestamp") or (has_no_rows and any(one.is_time for one in flags))
    )
    is_program = kind in _PROGRAM_KINDS
    has_switch = not server.is_mariadb and server.version >= (9, 7, 0)
    return ContextUse(
        is_known=found.is_known and facts.effects.stopped_at is None and not resolved.notes,
        time_zone=any(one.zone for one in flags) or found.reads_variable("time_zone"),
        has_microseconds=needs or any(one.has_microseconds for one in flags),
        needs_microseconds=needs,
        databases=None
        if keys or is_program or len(databases) > DATABASES_MAX
        else tuple(sorted(databases)),
        updated_tables=_updated_tables(facts, resolved)
        if is_update and (facts.is_multi_table or not server.is_mariadb)
        else 0,
        is_thread_specific=_is_thread_specific(facts, resolved)
        or any(text.effects.is_temporary for text in found.programs)
        or any(use.upper_name in _THREAD_FUNCTIONS for use in found.functions),
        has_cascade_switch=has_switch
        and (is_program or (kind in _CHANGING and not facts.has_query)),
        is_program=is_program,
        reads_diagnostics=found.reads_diagnostics(),
        changes_session=found.changes_session(),
        sets_user_variables=found.set_variables(),
        variable_names=found.variable_names(),
        may_skip_rows=any(map(_may_skip_rows, (facts, *found.programs))),
        needs_server_time=any(one.needs_server_time for one in flags),
        creates_table=kind in CREATE_TABLE_KINDS,
        creates_timestamps=_creates_timestamps(facts),
        routines=tuple(found.routines),
        names_charset=_logs_collations(server) and any(map(_names_charset, found.texts)),
        sets_context=any(one.name in _LOGGED_VARIABLES for one in facts.statement_assignments),
        reads=found.reads(resolve),
    )


class _Finder:
    """Looks through a statement and all that stands behind it."""

    def __init__(
        self,
        facts: StatementFacts,
        resolved: ResolvedStatement,
        objects: Objects,
        server: Server,
        database: str,
    ) -> None:
        self.facts = facts
        self.database = database
        self.resolved = resolved
        self.objects = objects
        self.server = server
        self.is_known = True
        self.routines: list[TableName] = []
        self.inner = list(self._programs())
        self.programs = [each for each, _ in self.inner]
        self.views = list(self._views())
        self.texts = [facts, *self.views, *self.programs, *self._defaults()]
        self.functions = [use for text in self.texts for use in text.functions]

    def reads_variable(self, name: str) -> bool:
        return any(use.name == name for text in self.texts for use in text.system_variables)

    def reads_diagnostics(self) -> bool:
        return any(use.upper_name in _DIAGNOSTIC_FUNCTIONS for use in self.functions) or any(
            map(self.reads_variable, _DIAGNOSTIC_VARIABLES)
        )

    def changes_session(self) -> bool:
        return not self.is_known or any(
            not one.name.startswith("@")
            and one.scope not in (VariableScope.GLOBAL, VariableScope.PERSIST)
            for text in self.programs
            for one in text.assignments
        )

    def set_variables(self) -> frozenset[str]:
        names = {
            use.name.lower()
            for text in self.texts
            for use in text.user_variables
            if use.is_assigned
        }
        names |= {
            one.name[1:].lower()
            for text in self.texts
            for one in text.assignments
            if one.name.startswith("@")
        }
        return frozenset(names)

    def variable_names(self) -> tuple[tuple[str, str], ...]:
        names: dict[str, str] = {}
        for text in self.texts:
            for use in text.user_variables:
                written = text.text[use.offset + 1 : use.offset + use.length]
                if written[:1] in ("`", "'", '"'):
                    written = quoted_name(written, text.dialect)
                if written.lower() == use.name:
                    names.setdefault(use.name, written)
        return tuple(names.items())

    def _views(self) -> Iterator[StatementFacts]:
        names = [use.name for use in self.facts.tables]
        for name in names:
            view = self.objects.view(name)
            if view is not None and len(names) < _VIEWS_MAX:
                yield view.facts
                names.extend(use.name for use in view.facts.tables)

    def reads(self, resolve: Resolve) -> UnlockedReads:
        """Give the statement's reads, with those of the statements in it that are logged by themselves."""
        found = [_reads(self.facts, self.resolved)]
        if self.facts.effects.kind in _PROGRAM_KINDS:
            found += [_reads(facts, resolve(facts, database)) for facts, database in self.inner]
        return UnlockedReads(*map(any, zip(*found, strict=True)))

    def _programs(self) -> Iterator[tuple[StatementFacts, str]]:
        """Facts of all statements in bodies that the statement runs, with their databases."""
        for facts in self._own_statements():
            yield facts, self.database
        waiting = list(self._called_first())
        seen: set[TableName] = set()
        for program in waiting:
            if program.name in seen:
                continue
            seen.add(program.name)
            database = program.name.database
            used = body_use(program.body, database, program.dialect)
            self.is_known &= used.is_understood
            for facts in used.facts:
                yield facts, database
                if facts.effects.kind in _PROGRAM_KINDS:
                    waiting += self._called(facts.functions, database)

    def _own_statements(self) -> Iterator[StatementFacts]:
        """Give the statements of a compound statement."""
        facts = self.facts
        if facts.effects.kind is StatementKind.COMPOUND:
            own = body_use(facts.text, self.database, facts.dialect)
            self.is_known &= own.is_understood
            yield from own.facts
        # The text of EXECUTE does not tell which statement it runs.
        self.is_known &= facts.effects.kind not in _EXECUTING

    def _called_first(self) -> Iterator[Routine | Trigger]:
        """The programs that the statement itself runs."""
        for access in self.resolved.accesses:
            if access.changes:
                yield from self.objects.triggers(access.name)
        for name in self.resolved.functions:
            function = self.objects.function(name)
            if function is not None:
                yield function
        kind = self.facts.effects.kind
        if kind is StatementKind.CALL:
            called = self._called(self.facts.functions, self.database)
            # A procedure that is not known, as one of a package, may do anything.
            self.is_known &= bool(called)
            yield from called
        elif kind is StatementKind.COMPOUND:
            own = body_use(self.facts.text, self.database, self.facts.dialect)
            for facts in own.facts:
                yield from self._called(facts.functions, self.database)

    def _called(self, uses: Iterable[FunctionUse], database: str) -> list[Routine]:
        found = []
        for use in uses:
            name = TableName(use.database or database, use.name)
            routine = self.objects.procedure(name) or self.objects.function(name)
            if routine is not None:
                found.append(routine)
                if not routine.is_function and routine.name not in self.routines:
                    self.routines.append(routine.name)
        return found

    def _defaults(self) -> Iterator[StatementFacts]:
        for access in self.resolved.accesses:
            table = access.table
            if not access.changes:
                continue
            for column in table.definition.columns:
                is_other = column.has_default_expression and column.default_form != "now"
                for text in (column.default if is_other else None, column.generated):
                    if text is not None and text not in _OF_PERIOD:
                        yield default_facts(text, table.name.database, table.dialect)


def _reads(facts: StatementFacts, resolved: ResolvedStatement) -> UnlockedReads:
    """Give the reads of a statement that changes something."""
    kind = facts.effects.kind
    makes_filled = kind is StatementKind.CREATE_TABLE_SELECT
    if not (makes_filled or any(access.changes for access in resolved.accesses)):
        return NO_UNLOCKED_READS
    # A MERGE table that is written locks its members as it is locked itself.
    read = [access.table for access in resolved.accesses if not _is_written(access)]
    others = any(not table.is_temporary for table in read)
    is_select = kind is StatementKind.SELECT
    return UnlockedReads(
        has_added_to=any(table.engine.upper() in _ADDED_TO_WHILE_READ for table in read),
        has_selected=is_select and others,
        has_others=others and not is_select,
    )


def _logs_collations(server: Server) -> bool:
    return server.is_mariadb and server.version >= _LOGS_COLLATIONS


def _names_charset(facts: StatementFacts) -> bool:
    """True if a text names a character set: `_utf8mb4'…'`, USING utf8mb4, CHARACTER SET utf8mb4."""
    if facts.effects.kind is StatementKind.LOAD_DATA:
        return False  # that is the file's
    try:
        tokens = list(tokenise(facts.text, facts.dialect))
    except SqlSyntaxError:
        return True
    return any(
        one.kind is TokenKind.NAME
        and (
            one.text.upper() in _CHARSET_WORDS
            or (one.text.startswith("_") and after.kind in (TokenKind.STRING, TokenKind.NUMBER))
        )
        for one, after in pairwise(tokens)
    )


def _creates_timestamps(facts: StatementFacts) -> bool:
    tree = facts.tree
    return isinstance(tree, CreateTable) and any(
        isinstance(one, DefinedColumn) and one.type is not None and one.type.name == "TIMESTAMP"
        for one in tree.elements
    )


def _may_skip_rows(facts: StatementFacts) -> bool:
    # The servers leave out rows of a file that comes from the client, also without IGNORE.
    is_load = facts.effects.kind is StatementKind.LOAD_DATA and facts.is_local
    return facts.is_ignore or facts.is_on_duplicate or is_load


def _is_written(access: TableAccess) -> bool:
    return bool(access.changes) or access.is_locked_for_write


def _has_foreign_keys(access: TableAccess, objects: Objects) -> bool:
    """True if rows of other tables are looked at or changed with those of a table."""
    if not _is_written(access):
        return False
    looks_at_parents = access.table.foreign_keys and access.changes != {RowChange.DELETE}
    return access.is_foreign_key or bool(looks_at_parents or objects.children(access.name))


def _updated_tables(facts: StatementFacts, resolved: ResolvedStatement) -> int:
    """The bits of the tables that UPDATE sets columns of, in the order of the text."""
    if not facts.is_multi_table:
        return 1
    own = [access for access in resolved.accesses if not access.is_prelocked]
    return sum(1 << place for place, access in enumerate(own) if access.changes)


def _is_thread_specific(facts: StatementFacts, resolved: ResolvedStatement) -> bool:
    kind = facts.effects.kind
    if kind is StatementKind.DROP_TABLE or facts.effects.is_temporary:
        return True
    if kind is StatementKind.DELETE and facts.is_multi_table:
        return True
    return any(access.table.is_temporary for access in resolved.accesses)


_KNOWN_MAX: Final = 4096


class KnownUses:
    """Uses of context by statements that differ in their literals alone, for all sessions of a source."""

    def __init__(self) -> None:
        self._version: object = None
        self._known: dict[Shape, ContextUse] = {}

    def of(self, facts: StatementFacts, session: Session, version: object) -> ContextUse:
        """Give a statement's use of its context.

        Args:
            facts: Parsed facts of the statement's text.
            session: Session that runs the statement.
            version: Version of the objects that all sessions have; known uses hold for one version.
        """
        facts = executed(facts, session)
        if facts.dialect is not session.dialect and not _reads_alike(facts, session.dialect):
            # The statement was prepared in another sql_mode or character set than its event would tell.
            return _use_in(facts, session)._replace(is_known=False)
        if version != self._version:
            self._version = version
            self._known.clear()
        shape, objects = facts.shape, session.objects
        if shape is None or objects.temporary_tables():
            return _use_in(facts, session)
        found = self._known.get(shape)
        if found is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            found = self._known[shape] = _use_in(facts, session)
        return found


def _reads_alike(facts: StatementFacts, dialect: Dialect) -> bool:
    """True if a text has the same meaning in another dialect as in its own."""
    text, own = facts.text, facts.dialect
    is_plain = is_alike(text) and '"' not in text
    return own == dialect or (
        is_plain
        and own
        == dialect._replace(
            ansi_quotes=own.ansi_quotes,
            no_backslash_escapes=own.no_backslash_escapes,
            pipes_as_concat=own.pipes_as_concat,
            charset=own.charset,
        )
    )


def executed(facts: StatementFacts, session: Session) -> StatementFacts:
    """Give the statement that EXECUTE or EXECUTE IMMEDIATE runs; the given one where that is not known.

    Args:
        facts: Parsed facts of a client's statement.
        session: Session that runs the statement.
    """
    text: str | None = None
    dialect, tree = session.dialect, facts.tree
    if facts.effects.kind is StatementKind.EXECUTE:
        known = session.programs.prepared.get(facts.name.lower())
        if known is not None and len(known.statements) == 1:
            text, dialect = known.statements[0], known.dialect
    elif (
        facts.effects.kind is StatementKind.EXECUTE_IMMEDIATE
        and isinstance(tree, Prepare)
        and isinstance(tree.source, Literal | UserVariable)
    ):
        value = evaluate(tree.source, facts, SessionEnvironment(session))
        if isinstance(value, Text):
            told = text_telling(value.content, session.dialect.charset)
            text = None if told is None else trimmed(server_text(told, session.dialect).read)
    if text is None:
        return facts
    return read(text, database=session.database, dialect=dialect)


def _use_in(facts: StatementFacts, session: Session) -> ContextUse:
    resolved = session.resolved(facts, session.database)
    return context_use(
        *(facts, resolved, session.objects, session.server, session.database),
        resolve=session.opened_by,
    )
