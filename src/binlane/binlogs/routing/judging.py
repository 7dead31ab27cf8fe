"""A statement and what is remembered → what one binlog makes of it, with the text that may stand there.

`statement_verdicts` and `objects` say what becomes of the objects; here is looked at what the text names
beside them: comments go, and what is left must be proven to be in scope, name by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from binlane.binlogs.routing.objects import (
    OBJECT_KINDS,
    after_tables,
    judge_object,
    routines_left_out,
    stored_object,
    views_left_out,
)
from binlane.binlogs.routing.remarks import dotted_names, without_comments, without_remarks
from binlane.binlogs.routing.routed_group import Omission, OmissionKind
from binlane.binlogs.routing.routing_memory import NOTHING, Memory, StoredObjectKind
from binlane.binlogs.routing.statement_verdicts import (
    Drop,
    IncidentVerdict,
    Keep,
    LeaveOut,
    Rewrite,
    Verdict,
    is_inside,
    judge,
    names_only,
)
from binlane.names import TableName, folded, quote
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.facts import FunctionUse, StatementEffects, StatementFacts
from binlane.statements.sql.logged_statements import LoggedStatement, first_word
from binlane.statements.sql.parser.reserved_words import reserved_words
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import (
    OPEN_ENDED_KINDS,
    TABLE_MAKING_KINDS,
    StatementKind,
)
from binlane.statements.sql.table_definitions import string_of
from binlane.statements.sql.tokens import SqlSyntaxError, TokenKind, names_in
from binlane.statements.sql.tree.account_statements import AccountStatement
from binlane.statements.sql.tree.definitions import (
    CreateEvent,
    CreateRoutine,
    CreateTrigger,
    Database,
)
from binlane.statements.sql.tree.expressions import Literal, children
from binlane.statements.sql.tree.statements import Prepare

_VIEWS: Final = frozenset({StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW})
_TABLES: Final = TABLE_MAKING_KINDS | {
    *(StatementKind.ALTER_TABLE, StatementKind.ALTER_SEQUENCE),
    *(StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX),
}
_WITH_REMARKS: Final = _TABLES | {
    StatementKind.CREATE_ROUTINE,
    StatementKind.ALTER_ROUTINE,
    StatementKind.CREATE_EVENT,
    StatementKind.ALTER_EVENT,
    StatementKind.CREATE_DATABASE,
    StatementKind.ALTER_DATABASE,
    StatementKind.CREATE_LIBRARY,
    StatementKind.ALTER_LIBRARY,
    StatementKind.ACCOUNT,
}
_DATABASE_OPTIONS: Final = frozenset({StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE})
_ROW_WORDS: Final = frozenset({"new", "old"})
_ON_WHAT_THEY_NAME: Final = frozenset(("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"))
"""First words of statements that change what they name and nothing else, new ones included."""
_COMMENT: Final = Omission(
    kind=OmissionKind.COMMENT, reason="a COMMENT may name objects outside of the scope"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedStatement:
    """The judgement on a statement for one binlog.

    Attributes:
        verdict: Verdict of `statement_verdicts`; a Keep keeps `text`.
        text: The statement as it may stand in the binlog.
        facts: Facts of the text `text` itself.
        memory: Routing's memory behind the statement.
        omissions: Parts of the statement that stay out, beside those that the verdict tells.
    """

    verdict: Verdict
    text: str
    facts: StatementFacts
    memory: Memory
    omissions: tuple[Omission, ...] = ()


def judge_statement(statement: LoggedStatement, scope: Scope, memory: Memory) -> RoutedStatement:
    """Say what a binlog of `scope` makes of a statement that has run."""
    text = without_comments(statement.text, statement.dialect)
    facts = read(text, database=statement.database, dialect=statement.dialect)
    if scope.ignores_case:
        facts = replace(facts, effects=_in_lower_case(facts.effects))
    reader = _Reader(replace(statement, text=text), facts, scope, memory)
    verdict, memory = reader.verdict()
    omissions: tuple[Omission, ...] = ()
    if isinstance(verdict, Keep):
        text, verdict, omissions = reader.told()
        if isinstance(verdict, LeaveOut | IncidentVerdict):
            memory = reader.memory_without
    return RoutedStatement(
        verdict=verdict, text=text, facts=facts, memory=memory, omissions=omissions
    )


def text_in_scope(statement: LoggedStatement) -> str:
    """The text that a binlog of a scope has of a statement all of which is in it."""
    found = judge_statement(statement, Scope.everything(), NOTHING)
    if isinstance(found.verdict, Rewrite):
        return found.verdict.statement
    return found.text if isinstance(found.verdict, Keep) else statement.text


class _Reader:
    """The names of one statement, against one scope."""

    def __init__(
        self, statement: LoggedStatement, facts: StatementFacts, scope: Scope, memory: Memory
    ) -> None:
        self._statement = statement
        self._facts = facts
        self._scope = scope
        self._memory = memory
        self.memory_without = memory

    def verdict(self) -> tuple[Verdict, Memory]:
        effects, scope, memory = self._facts.effects, self._scope, self._memory
        if effects.kind in OBJECT_KINDS and _is_named(effects):
            text = self._statement.text
            return judge_object(self._facts, text, scope, memory, is_clean=self._is_clean_object())
        if effects.stopped_at is not None or effects.kind is StatementKind.UNKNOWN:
            is_ours = _may_concern(self._statement, effects, scope)
            return judge(effects, scope) if is_ours else Drop(), memory
        if effects.kind is StatementKind.ACCOUNT:
            return self._judge_account(), memory
        after = after_tables(self._facts, scope, memory)
        if effects.kind in _DATABASE_OPTIONS and self._is_touched_only(effects):
            options = self._database_options()
            if options is not None:
                return options, after
        views = views_left_out(memory)
        if views and effects.renames:
            return self._judge_renames(effects, views), after
        verdict = judge(effects, scope)
        if isinstance(verdict, Keep) and not views.isdisjoint({*effects.writes, *effects.reads}):
            if effects.kind is StatementKind.MAINTENANCE:
                reason = "it names a view that was left out"
                return LeaveOut(Omission(kind=OmissionKind.ADMIN, reason=reason)), after
            return IncidentVerdict("a statement needs a view that was left out"), after
        return verdict, after

    def _is_touched_only(self, effects: StatementEffects) -> bool:
        """True if a binlog logs tables of a database, and not the database."""
        (database, *_) = effects.databases
        scope = self._scope
        return scope.touches_database(database) and not scope.includes_database(database)

    def _database_options(self) -> Verdict | None:
        """The defaults of a database, which tables take that are made in it later."""
        facts = self._facts
        if facts.effects.kind is StatementKind.ALTER_DATABASE:
            return Keep()
        if facts.effects.if_exists or facts.effects.is_or_replace:
            return None
        (database,) = facts.effects.databases
        node = facts.tree
        assert isinstance(node, Database)
        kept = (each for each in node.options if each.name != "COMMENT")
        options = " ".join(map(facts.text_of, kept))
        return Rewrite(f"ALTER DATABASE {quote(database)} {options}") if options else None

    def _judge_renames(self, effects: StatementEffects, views: frozenset[TableName]) -> Verdict:
        """RENAME TABLE of views that were left out, and of what is beside them."""
        names = set(views)
        staying: list[tuple[TableName, TableName]] = []
        for old, new in effects.renames:
            if old in names:
                names = names - {old} | {new}
            else:
                staying.append((old, new))
        if not staying:
            return Drop()
        if len(staying) == len(effects.renames):
            return judge(effects, self._scope)
        rest = replace(effects, renames=tuple(staying))
        verdict = judge(
            replace(rest, writes=(*rest.renamed_tables, *(new for _, new in rest.net_renames))),
            self._scope,
        )
        if not isinstance(verdict, Keep):
            return verdict
        return Rewrite("RENAME TABLE " + ", ".join(f"{old} TO {new}" for old, new in staying))

    def _judge_account(self) -> Verdict:
        verdict = judge(self._facts.effects, self._scope)
        if not isinstance(verdict, Keep) or self._facts.verb not in ("GRANT", "REVOKE"):
            return verdict
        node = self._facts.tree
        if not isinstance(node, AccountStatement):
            reason = "it cannot be told what it is about"
            return LeaveOut(Omission(kind=OmissionKind.GRANT, reason=reason))
        on, scope = node.on, self._scope
        if on is None or (on.database, on.name) == ("*", "*"):  # roles, PROXY, everything
            return Keep()
        database = self._statement.database if on.database is None else on.database
        name = TableName(database, on.name)
        if on.name == "*":
            is_known = scope.touches_database(_unescaped(database))
        elif node.object_kind == "TABLE":
            is_known = is_inside(name, scope) and name not in views_left_out(self._memory)
        else:
            one = stored_object(StoredObjectKind(node.object_kind.lower()), name)
            is_known = scope.includes_database(database) and one not in self._memory.left_out
        if is_known:
            return Keep()
        reason = "it is about an object outside of the scope, or one that was left out"
        return LeaveOut(Omission(kind=OmissionKind.GRANT, reason=reason))

    def _is_clean_object(self) -> bool:
        """True if all objects that a view, trigger, routine or event names are in scope and there."""
        facts, effects = self._facts, self._facts.effects
        if not names_only(effects, self._scope) or self._has_names_unknown():
            return False
        if not all(self._scope.touches_database(name.database) for name in effects.objects):
            return False
        is_view = effects.kind in _VIEWS
        database = self._statement.database if is_view else effects.objects[0].database
        if not self._are_inside(facts.body_functions, database, must_exist=is_view):
            return False
        if is_view:
            return views_left_out(self._memory).isdisjoint(effects.reads)
        return not self._is_opaque() and self._is_clean_by_default(database)

    def _is_clean_by_default(self, database: str) -> bool:
        """True if a body's names without a database would be in scope in the session's database, too.

        A body runs in its program's database, but its author may have meant the session's.
        """
        default, facts = self._statement.database, self._facts
        if default in ("", database):
            return True
        chains, _ = dotted_names(self._statement.text, self._statement.dialect)
        return self._are_inside(facts.body_functions, default, must_exist=False) and all(
            is_inside(TableName(default, name.table), self._scope)
            for name in facts.effects.reads
            if name.database == database and (database, name.table) not in chains
        )

    def _are_inside(
        self, functions: Iterable[FunctionUse], database: str, *, must_exist: bool
    ) -> bool:
        """True if the stored and loadable functions that are called are in scope."""
        lacking = routines_left_out(self._memory) if must_exist else frozenset[TableName]()
        for use in functions:
            if use.database is None and not use.is_quoted and is_built_in(use.name):
                continue
            name = TableName(use.database or database, use.name.lower())
            if not self._scope.includes_database(name.database) or name in lacking:
                return False
        return True

    def _is_opaque(self) -> bool:
        """True if a body runs text that is not in the statement, or is in another language."""
        facts = self._facts
        if facts.effects.kind in (StatementKind.CREATE_PACKAGE, StatementKind.CREATE_LIBRARY):
            return True
        node = facts.tree
        if not isinstance(node, CreateRoutine | CreateTrigger | CreateEvent):
            return False
        if node.body is None or facts.dialect.is_oracle:
            return node.body_at >= 0  # of another language
        database = facts.effects.objects[0].database
        waiting = [node.body]
        while waiting:
            part = waiting.pop()
            waiting += children(part)
            if not isinstance(part, Prepare) or part.source is None:
                continue
            if not isinstance(part.source, Literal):
                return True
            if not self._is_inside_text(string_of(part.source, facts), database):
                return True
        return False

    def _is_inside_text(self, text: str, database: str) -> bool:
        """True if a statement that another one prepares names only objects in scope."""
        dialect = self._statement.dialect
        facts = read(text, database=database, dialect=dialect)
        return (
            without_comments(text, dialect) == text
            and facts.effects.kind is not StatementKind.ACCOUNT
            and names_only(facts.effects, self._scope)
            and self._are_inside(
                (*facts.functions, *facts.body_functions), database, must_exist=False
            )
        )

    def _has_names_unknown(self) -> bool:
        """True if a name with a dot is none of the names that the statement is known to use."""
        effects = self._facts.effects
        if "." not in self._statement.text:
            return False
        named = {*effects.writes, *effects.reads, *effects.objects, *effects.calls}
        pairs = {(name.database.lower(), name.table.lower()) for name in named}
        chains, single = dotted_names(self._statement.text, self._statement.dialect)
        alone = {name.lower() for name in single} | _ROW_WORDS
        for first, second, *rest in chains:
            pair = (first.lower(), second.lower())
            if pair in pairs and len(rest) <= 1:
                continue
            if not rest and pair[0] in alone:
                continue
            return True
        return False

    def told(self) -> tuple[str, Verdict, tuple[Omission, ...]]:
        """The text of a statement that is kept, or why it cannot stand there."""
        statement, facts, kind = self._statement, self._facts, self._facts.effects.kind
        text, omissions = statement.text, tuple[Omission, ...]()
        if kind in _TABLES and self._has_names_unknown():
            return text, IncidentVerdict("a definition may name objects outside of the scope"), ()
        if kind in _WITH_REMARKS:
            end = facts.body_offset if facts.query_offset is None else facts.query_offset
            remarks = without_remarks(text, end, statement.dialect)
            if kind in _TABLES and remarks.elsewhere:
                reason = f"a table's definition has {remarks.elsewhere}, which may name others"
                return text, IncidentVerdict(reason), ()
            text, omissions = remarks.text, (_COMMENT,) if remarks.has_comments else ()
        if kind is StatementKind.CREATE_TRIGGER:
            text = self._without_order(text)
        if kind not in OBJECT_KINDS and not self._are_inside(
            facts.functions, statement.database, must_exist=True
        ):
            return (
                text,
                IncidentVerdict("a statement calls a function that is not in the scope"),
                (),
            )
        return text, Keep(), omissions

    def _without_order(self, text: str) -> str:
        """CREATE TRIGGER without FOLLOWS or PRECEDES of one that replicas do not have."""
        node = self._facts.tree
        if not isinstance(node, CreateTrigger) or node.order is None:
            return text
        other = TableName(self._facts.effects.objects[0].database, node.order[1])
        if self._memory.has_left_out((StoredObjectKind.TRIGGER,), other):
            at, body_at = map(self._facts.place, (node.order_at, node.body_at))
            return text[:at] + text[body_at:]
        return text


def _in_lower_case(effects: StatementEffects) -> StatementEffects:
    """The objects by the names that a server has them by which ignores their case."""

    def lowered(names: Iterable[TableName]) -> tuple[TableName, ...]:
        return tuple(dict.fromkeys(name.folded for name in names))

    return replace(
        effects,
        writes=lowered(effects.writes),
        reads=lowered(effects.reads),
        databases=tuple(dict.fromkeys(map(folded, effects.databases))),
        objects=lowered(effects.objects),
        calls=lowered(effects.calls),
        renames=tuple((old.folded, new.folded) for old, new in effects.renames),
        drops=lowered(effects.drops),
    )


def _unescaped(pattern: str) -> str:
    """The database that a pattern of GRANT means if it means a single one."""
    return pattern.replace("\\_", "_").replace("\\%", "%")


def _is_named(effects: StatementEffects) -> bool:
    """True if the analysis came as far as the object, and a trigger's table."""
    is_trigger = effects.kind is StatementKind.CREATE_TRIGGER
    return bool(effects.objects) and (bool(effects.writes) or not is_trigger)


def _may_concern(statement: LoggedStatement, effects: StatementEffects, scope: Scope) -> bool:
    """True if a statement that is not understood may change something in a scope.

    It is still made of names. If none of its names, with or without the default database, can mean
    anything in the scope, the scope is not concerned; for all else replicas must stop.

    Args:
        statement: The statement as it was logged.
        effects: Known effects of the statement on objects.
        scope: Scope of the binlog to route to.
    """
    if scope.log_all or scope.includes_database(statement.database):
        return True
    kind = effects.kind
    if kind is StatementKind.ACCOUNT:
        return any(map(scope.includes_database, effects.databases))
    is_known = kind is not StatementKind.UNKNOWN and kind not in OPEN_ENDED_KINDS
    if not (is_known or first_word(statement.text) in _ON_WHAT_THEY_NAME):
        return True
    in_case = folded if scope.ignores_case else str
    databases = {in_case(table.database) for table in scope.log_tables}
    reserved = reserved_words(Dialect())
    try:
        for first, chain in names_in(statement.text, statement.dialect):
            names = tuple(map(in_case, chain))
            if len(names) == 1:
                name = names[0]
                if first is TokenKind.NAME and name.upper() in reserved:
                    continue
                if name in databases or scope.includes_database(name):
                    return True
                names = (statement.database, name)
            if any(
                scope.includes(TableName(*pair)) or scope.includes_database(pair[0])
                for pair in pairwise(names)
            ):
                return True
    except SqlSyntaxError:
        return True
    return False
