"""Knowledge of a server's objects: the questions that were answered, and their answers.

Grows by answers, and shrinks by DDL, after which what it may have changed is not known any more.
What a statement needs is followed from its text through all that belongs to what it names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from binlane.client.needed_objects import (
    BASE,
    Need,
    Question,
    Topic,
    questions_of,
)
from binlane.client.questions import (
    Answer,
    AskingContext,
    NotUnderstoodError,
    is_of_server,
)
from binlane.log.codec.types import Flavor
from binlane.names import TableName, folded
from binlane.statements.policy.used_objects import body_use
from binlane.statements.sql.facts import Shape, StatementFacts, VariableScope
from binlane.statements.sql.object_store import OBJECT_KINDS, ChildTables, ObjectStore
from binlane.statements.sql.schema import small
from binlane.statements.sql.servers import Dialect, Version
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    TABLE_DROPPING_KINDS,
    TABLE_MAKING_KINDS,
    VIEW_KINDS,
    StatementKind,
)
from binlane.statements.sql.tokens import LONG
from binlane.statements.sql.tree.account_statements import AccountStatement
from binlane.statements.sql.tree.definitions import AlterTable, CreateRoutine
from binlane.statements.sql.tree.statements import innermost

_COVERED_MAX: Final = 8_192
_NO_OBJECTS: Final = frozenset(
    (
        *(StatementKind.SERVER, StatementKind.TABLESPACE, StatementKind.MAINTENANCE),
        *(StatementKind.CREATE_LIBRARY, StatementKind.ALTER_LIBRARY, StatementKind.DROP_LIBRARY),
        *(StatementKind.CREATE_REFERENCE_SYSTEM, StatementKind.DROP_REFERENCE_SYSTEM),
        StatementKind.TRUNCATE_TABLE,
    )
)
"""DDL of what nobody asks for here."""
_BESIDE_DDL: Final = frozenset(("IMPORT TABLE", "INSTALL COMPONENT", "UNINSTALL COMPONENT"))
"""Statements that make objects, and are no DDL to the log."""
_KEEPING: Final = frozenset(
    (
        *("ALGORITHM", "DISABLE KEYS", "DISCARD TABLESPACE", "ENABLE KEYS", "IMPORT TABLESPACE"),
        *("LOCK", "VALIDATION"),
    )
)
"""Actions of ALTER TABLE that leave a table's definition as it is."""
_GLOBAL: Final = frozenset((VariableScope.GLOBAL, VariableScope.PERSIST))


def _has_table(answer: Answer) -> bool:
    """True if the answer says that a table or a view exists, understood or not."""
    told = answer.objects
    return bool(told.tables or told.views or told.unknown)


class KnownObjects:
    """The known objects of one server.

    Attributes:
        flavor: The flavor of the server.
        server_version: The version of the server.
        store: The objects. Its dictionaries grow as they are, and are replaced by others where
            something is forgotten: who shares them sees what comes, and keeps what he had.
        version: Another object whenever something that was known is not known any more. What was
            found out of a statement of which all is known stays right until then.
        epoch: Counts what was forgotten, or might have been.
    """

    def __init__(self, flavor: Flavor, server_version: Version) -> None:
        self.flavor = flavor
        self.server_version = server_version
        self.store = ObjectStore()
        self.version: object = object()
        self.epoch = 0
        self._answers: dict[Question, Answer] = {}
        self._failures: dict[Question, NotUnderstoodError] = {}
        self._not_understood: set[Question] = set()
        self._programs: dict[str, Answer] = {}
        self._users: set[str] | None = None
        self._shapes: set[tuple[Shape, str]] = set()
        self._facts: dict[tuple[int, str], StatementFacts] = {}

    @property
    def asked(self) -> AskingContext:
        """The facts on which questions depend, as they are now."""
        return AskingContext(
            flavor=self.flavor,
            version=self.server_version,
            store=ObjectStore(
                databases=self.store.databases,
                accounts=self.store.accounts,
                settings=self.store.settings,
            ),
            programs=self._programs.copy(),
            users=None if self._users is None else frozenset(self._users),
        )

    @property
    def ignores_case(self) -> bool:
        """True if names are kept in lower case."""
        return self.store.settings.get("lower_case_table_names", "0") != "0"

    @property
    def dialect(self) -> Dialect:
        """The dialect in which the server reads statements without an sql_mode."""
        return Dialect(
            flavor=self.flavor.value,
            version=self.server_version,
            lower_case_names=self.ignores_case,
        )

    def covers(self, facts: StatementFacts, database: str) -> bool:
        """True if all is known that a statement uses."""
        shape = facts.shape
        if shape is not None:
            if (shape, database) in self._shapes:
                return True
        elif self._facts.get((id(facts), database)) is facts:
            return True
        if next(self.lacking(facts, database), None) is not None:
            return False
        if len(self._shapes) + len(self._facts) >= _COVERED_MAX:
            self._shapes.clear()
            self._facts.clear()
        if shape is not None:
            self._shapes.add((shape, database))
        elif len(facts.text) <= LONG:  # or nobody keeps its facts
            self._facts[id(facts), database] = facts
        return True

    def lacking(self, facts: StatementFacts, database: str) -> Iterator[Question]:
        """Return the questions to ask next for a statement; their answers may raise more.

        Raises:
            NotUnderstoodError: If the answer to something was not understood.
        """
        base = [one for one in BASE if one not in self._answers]
        if base:
            yield from base
            return
        yield from self._lacking(questions_of(facts, self._cased(database)))

    def lacking_of(self, questions: Iterable[Question]) -> Iterator[Question]:
        """Return the questions to ask next about objects; their answers may raise more."""
        base = [one for one in BASE if one not in self._answers]
        if base:
            yield from base
            return
        yield from self._lacking(tuple(Need(one) for one in questions))

    def is_asked(self, question: Question) -> bool:
        """True if the answer to a question is known, be it understood or not."""
        try:
            return self._answer(self._normal(Need(question)).question) is not None
        except NotUnderstoodError:
            return True

    def missed(self, names: Iterable[TableName]) -> tuple[Question, ...]:
        """Return unasked questions about objects that were looked up and are not known."""
        questions = (
            Question(topic, name if topic is Topic.TABLE else small(name))
            for name in names
            for topic in (Topic.TABLE, Topic.FUNCTION, Topic.PROCEDURE)
            if name.database and not is_of_server(name)
        )
        return tuple(one for one in questions if not self.is_asked(one))

    def reached(self, needs: Iterable[Need]) -> list[tuple[Question, Answer]]:
        """Return the known answers about some objects and those they lead to, except by keys alone.

        Raises:
            NotUnderstoodError: If the answer to something was not understood.
        """
        found: dict[Need, None] = {}
        for _ in self._lacking(needs, found):
            pass
        deep = (need.question for need in found if need.is_deep)
        return [(one, told) for one in deep if (told := self._answer(one)) is not None]

    def _lacking(
        self, needs: Iterable[Need], seen: dict[Need, None] | None = None
    ) -> Iterator[Question]:
        waiting = list(reversed(tuple(needs)))
        seen = {} if seen is None else seen
        while waiting:
            need = self._normal(waiting.pop())
            if need in seen or is_of_server(need.question.name):
                continue
            seen[need] = None
            question = need.question
            answer = self._answer(question)
            if answer is None:
                yield self.before(question)
            elif need.is_deep:
                waiting += answer.needs
                waiting += self._hanging_on(question, answer)

    def _normal(self, need: Need) -> Need:
        """Return the need with the name as the server keeps it."""
        topic, name = need.question
        if self.ignores_case:
            table = name.table if topic is Topic.PROGRAMS else folded(name.table)
            return Need(
                Question(topic, TableName(folded(name.database), table)), is_deep=need.is_deep
            )
        return need

    def _cased(self, database: str) -> str:
        return folded(database) if self.ignores_case else database

    def _answer(self, question: Question) -> Answer | None:
        failure = self._failures.get(question)
        if failure is not None:
            raise failure
        found = self._answers.get(question)
        if found is not None or question.topic not in _BY_PROGRAMS:
            return found
        programs = self._programs.get(question.name.database)
        if programs is None:
            return None
        if question.topic is Topic.TRIGGER:
            table = programs.tables.get(question.name)
            if table is None:
                return _ABSENT
            return Answer(needs=(Need(Question(Topic.TABLE, table)),))
        if question.topic is Topic.TRIGGERS:
            return None if question.name in programs.triggers else _ABSENT
        key = (question.topic is Topic.FUNCTION, question.name)
        return None if key in programs.routines else _ABSENT

    def before(self, question: Question) -> Question:
        """Return the question to ask first for the answer to a question: itself, if none."""
        database = question.name.database
        if question.topic in _BY_PROGRAMS and database not in self._programs:
            return Question(Topic.PROGRAMS, TableName(database, ""))
        return question

    def _hanging_on(self, question: Question, answer: Answer) -> Iterator[Need]:
        """Give the needs of a table that its definition does not say."""
        if question.topic is not Topic.TABLE or not answer.objects.tables:
            return
        name = question.name
        yield Need(Question(Topic.TRIGGERS, name))
        keys = self._answers.get(_KEYS)
        if keys is None:
            yield Need(_KEYS)
        else:
            for child in keys.children.get(name, ()):
                yield Need(Question(Topic.TABLE, child))

    # What comes and goes --------------------------------------------------------------------------

    def take(self, question: Question, answer: Answer) -> None:
        """Store the answer to a question, at once for all who share the objects."""
        self._answers[question] = answer
        if question.topic is Topic.PROGRAMS:
            self._programs[question.name.database] = answer
        elif question.topic is Topic.ACCOUNTS:
            self._users = set()
        for kind in OBJECT_KINDS:
            mine, told = getattr(self.store, kind), getattr(answer.objects, kind)
            if question.topic is _WHOLE.get(kind):
                mine.clear()
            mine.update(told)
        if answer.objects.tables:
            self.store.children.keys = None

    def give(self, store: ObjectStore, questions: Iterable[Question]) -> None:
        """Copy the answers about some objects into another set of objects."""
        for question in questions:
            answer = self._answers.get(question)
            if answer is not None:
                for kind in OBJECT_KINDS:
                    getattr(store, kind).update(getattr(answer.objects, kind))
        store.children = ChildTables()

    def fail(self, question: Question, failure: NotUnderstoodError) -> None:
        """Know that the answer to a question is not understood; of a table, that it may be there."""
        if question.topic is Topic.TABLE:
            self.take(question, Answer(objects=ObjectStore(unknown={question.name})))
        elif question.topic is Topic.ACCOUNTS:
            # As where nobody may see them: while a dump restores `mysql.user`, for one, it is no table.
            self.take(question, Answer())
        else:
            self._failures[question] = failure
            return
        self._not_understood.add(question)

    def changed(self, facts: StatementFacts, database: str) -> None:
        """Forget what a statement may have changed, whether it succeeded or not."""
        if self._not_understood:
            # The reason is not known: it may have been another object, such as a view that leads
            # back to it.
            self._forget(self._not_understood)
            self._not_understood.clear()
        for one in self._changing(facts, database, set()):
            self._forget_of(one)

    def forget_all(self) -> None:
        """Forget all objects."""
        self._answers, self._failures, self._programs = {}, {}, {}
        self._not_understood.clear()
        self._users = None
        store = self.store
        self.store = ObjectStore(
            databases=store.databases.copy(),
            loadable=store.loadable.copy(),
            accounts=store.accounts.copy(),
            settings=store.settings.copy(),
        )
        self._moved()

    def _changing(
        self, facts: StatementFacts, database: str, seen: set[int]
    ) -> Iterator[StatementFacts]:
        """Return the statement itself, or the statements of the programs that it runs."""
        kind = facts.effects.kind
        is_change = kind in DDL_KINDS or kind is StatementKind.SET or facts.verb in _BESIDE_DDL
        if is_change or facts.effects.stopped_at is not None:
            yield facts
        if kind is StatementKind.COMPOUND:
            for part in body_use(facts.text, database, facts.dialect).facts:
                if id(part) not in seen and part.effects.kind is not StatementKind.COMPOUND:
                    seen.add(id(part))
                    yield from self._changing(part, database, seen)
        if kind is StatementKind.CALL:
            use = facts.functions[0]
            name = small(TableName(use.database or database, use.name))
            routine = self.store.routines.get((False, name))
            if routine is not None and id(routine) not in seen:
                seen.add(id(routine))
                body = body_use(routine.body, name.database, routine.dialect)
                if not body.is_understood:
                    yield facts  # it may change anything
                for part in body.facts:
                    yield from self._changing(part, name.database, seen)

    def _forget_of(self, facts: StatementFacts) -> None:
        effects = facts.effects
        if effects.is_temporary or effects.kind in _NO_OBJECTS:
            return
        forget = None if effects.stopped_at is not None else _FORGETTING.get(effects.kind)
        if forget is None:
            self.forget_all()
        else:
            forget(self, facts)

    def views_changed(self, facts: StatementFacts) -> None:
        """Forget the views that a statement changes."""
        self._forget(Question(Topic.TABLE, name) for name in facts.effects.objects)

    def events_changed(self, facts: StatementFacts) -> None:
        """Forget the events that a statement changes."""
        self._forget(Question(Topic.EVENT, small(name)) for name in facts.effects.objects)

    def accounts_changed(self, facts: StatementFacts) -> None:
        """Forget the accounts and roles that a statement changes."""
        tree = facts.tree
        if facts.effects.kind is StatementKind.FLUSH and "PRIVILEGES" not in facts.text.upper():
            return
        named = (*tree.accounts, *tree.roles) if isinstance(tree, AccountStatement) else ()
        is_told = bool(named) and not any(one.is_current for one in named)
        # The maker of a role is given it.
        is_told &= facts.verb != "CREATE ROLE"
        self._forget_accounts([one.user for one in named] if is_told else None)

    def settings_changed(self, facts: StatementFacts) -> None:
        """Forget the global settings if a SET statement changes one."""
        if any(one.scope in _GLOBAL for one in facts.assignments):
            self.forget_settings()

    def forget_settings(self) -> None:
        """Know no more which values global variables have."""
        self._forget([Question(Topic.SETTINGS)])

    def tables_changed(self, facts: StatementFacts) -> None:
        """Tables, sequences, their indexes."""
        effects, tree = facts.effects, innermost(facts.tree)
        if isinstance(tree, AlterTable) and all(one.kind in _KEEPING for one in tree.actions):
            return  # a dump has two for each table, under a lock that nobody else can read behind
        names = set(self._touched(facts))
        found = {Question(topic, name) for name in names for topic in (Topic.TABLE, Topic.TRIGGERS)}
        if effects.renames or effects.drops or facts.effects.is_or_replace:
            found |= {Question(Topic.PROGRAMS, TableName(name.database, "")) for name in names}
        if names and (effects.renames or "REFERENCES" in facts.text.upper()):
            found.add(_KEYS)
        if effects.kind in (StatementKind.ALTER_TABLE, StatementKind.RENAME_TABLE):
            # Their keys name the table, or columns of it.
            found |= {Question(Topic.TABLE, child) for child in self._children(names)}
        found |= {Question(Topic.NAMES, TableName(name.database, "")) for name in names}
        self._forget(found)

    def _touched(self, facts: StatementFacts) -> Iterator[TableName]:
        """Return the tables that DDL changes, except those that stay as they are known.

        What is known not to be there can be a temporary table of the session. It can also have been read when it
        was gone already, behind a statement of which is heard only now; what is known of other tables of that
        statement may be older.
        """
        effects, kind = facts.effects, facts.effects.kind
        for old, new in effects.renames:
            if not self._is_absent(old):
                yield old
            yield new
        renamed = {name for pair in effects.renames for name in pair}
        names = effects.writes
        if kind in TABLE_DROPPING_KINDS:
            names = tuple(name for name in names if not self._is_absent(name))
        elif kind in TABLE_MAKING_KINDS:
            if effects.if_exists and not facts.effects.is_or_replace and self._is_there(names[0]):
                return
        elif names and self._is_absent(names[0]):
            names = names[1:]
        yield from (name for name in names if name not in renamed)

    def _is_absent(self, name: TableName) -> bool:
        """True if a table or view is known not to be there."""
        found = self._answers.get(self._normal(Need(Question(Topic.TABLE, name))).question)
        return found is not None and not _has_table(found)

    def _is_there(self, name: TableName) -> bool:
        """True if a table or view is known to be there."""
        found = self._answers.get(self._normal(Need(Question(Topic.TABLE, name))).question)
        return found is not None and _has_table(found)

    def _children(self, parents: Collection[TableName]) -> Iterator[TableName]:
        """The tables that refer to some, as far as that was known last."""
        keys = self._answers.get(_KEYS)
        if keys is not None:
            for parent in parents:
                yield from keys.children.get(parent, ())
        children = self.store.children.of(self.store.tables)
        for parent in parents:
            yield from (key.table for key in children.get(parent, ()))

    def triggers_changed(self, facts: StatementFacts) -> None:
        """Forget the triggers that a statement changes."""
        effects = facts.effects
        found = {Question(Topic.TRIGGERS, name) for name in effects.writes}
        for name in effects.objects:
            found.add(Question(Topic.PROGRAMS, TableName(name.database, "")))
            programs = self._programs.get(self._cased(name.database))
            table = None if programs is None else programs.tables.get(name)
            if table is not None:
                found.add(Question(Topic.TRIGGERS, table))
            elif effects.kind is StatementKind.DROP_TRIGGER:
                found |= {
                    one
                    for one in self._answers
                    if one.topic is Topic.TRIGGERS and one.name.database == name.database
                }
        self._forget(found)

    def routines_changed(self, facts: StatementFacts) -> None:
        """Routines, loadable functions, packages."""
        found = {Question(Topic.LOADABLE)} if "FUNCTION" in facts.verb else set()
        for name in facts.effects.objects:
            found.add(Question(Topic.FUNCTION, small(name)))
            found.add(Question(Topic.PROCEDURE, small(name)))
            found.add(Question(Topic.PROGRAMS, TableName(name.database, "")))
        self._forget(found)
        # The maker of a routine may run it from then on, and nobody may who could before.
        tree = facts.tree
        definer = tree.definer if isinstance(tree, CreateRoutine) else None
        users = [] if definer is None or definer.is_current else [definer.user]
        names = {(name.database, name.table.lower()) for name in facts.effects.objects}
        for account, grantee in self.store.accounts.items():
            if any(level[1:3] in names for level in grantee.privileges):
                users.append(account.user)
        if users:
            self._forget_accounts(users)

    def _forget_accounts(self, users: Iterable[str] | None) -> None:
        """Forget the privileges of some users; None stands for all users."""
        if users is None:
            self._users = None
        elif self._users is not None:
            self._users.update(users)
        self._forget([Question(Topic.ACCOUNTS)])

    def databases_changed(self, facts: StatementFacts) -> None:
        """Forget the databases that a statement changes."""
        effects = facts.effects
        found = {Question(Topic.DATABASES)}
        names = {self._cased(name) for name in effects.dropped_databases}
        known = (*self._answers, *self._failures) if names else ()
        found |= {one for one in known if one.name.database in names}
        self._forget(found)

    def _forget(self, questions: Iterable[Question]) -> None:
        """Forget some objects; others who share the objects keep theirs."""
        found = {self._normal(Need(one)).question for one in questions}
        gone = [one for one in found if one in self._answers or one in self._failures]
        self.epoch += 1
        if not gone:
            return
        store = self.store = ObjectStore(*(getattr(self.store, one).copy() for one in OBJECT_KINDS))
        for question in gone:
            self._failures.pop(question, None)
            answer = self._answers.pop(question, None)
            topic, name = question
            if topic is Topic.PROGRAMS:
                self._programs.pop(name.database, None)
            # The answers to `BASE` are there, as they were, until they are known anew.
            if answer is None or question in BASE:
                continue
            for kind in OBJECT_KINDS:
                mine, told = getattr(store, kind), getattr(answer.objects, kind)
                for one in told:
                    mine.discard(one) if isinstance(mine, set) else mine.pop(one, None)
        self._forgotten()

    def _moved(self) -> None:
        self.epoch += 1
        self._forgotten()

    def _forgotten(self) -> None:
        self.version = object()
        self._shapes.clear()
        self._facts.clear()


_ABSENT: Final = Answer()
_BY_PROGRAMS: Final = frozenset((Topic.TRIGGERS, Topic.TRIGGER, Topic.FUNCTION, Topic.PROCEDURE))
"""Topics of objects that PROGRAMS of the database tells first."""
_WHOLE: Final[Mapping[str, Topic]] = MappingProxyType(
    {topic.value: topic for topic in (question.topic for question in BASE)}
)
"""Topics of which one answer tells all, by the store's name of them."""
_KEYS: Final = Question(Topic.KEYS)
_FORGETTING: Final[Mapping[StatementKind, Callable[[KnownObjects, StatementFacts], None]]] = (
    MappingProxyType(
        {
            **dict.fromkeys(
                (
                    *(StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_LIKE),
                    *(StatementKind.CREATE_TABLE_SELECT, StatementKind.ALTER_TABLE),
                    *(StatementKind.RENAME_TABLE, StatementKind.DROP_TABLE),
                    *(StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX),
                    *(StatementKind.CREATE_SEQUENCE, StatementKind.ALTER_SEQUENCE),
                    StatementKind.DROP_SEQUENCE,
                ),
                KnownObjects.tables_changed,
            ),
            **dict.fromkeys(VIEW_KINDS, KnownObjects.views_changed),
            **dict.fromkeys(
                (StatementKind.CREATE_TRIGGER, StatementKind.DROP_TRIGGER),
                KnownObjects.triggers_changed,
            ),
            **dict.fromkeys(
                (
                    *(StatementKind.CREATE_ROUTINE, StatementKind.ALTER_ROUTINE),
                    *(StatementKind.DROP_ROUTINE, StatementKind.CREATE_PACKAGE),
                    StatementKind.DROP_PACKAGE,
                ),
                KnownObjects.routines_changed,
            ),
            **dict.fromkeys(
                (StatementKind.CREATE_EVENT, StatementKind.ALTER_EVENT, StatementKind.DROP_EVENT),
                KnownObjects.events_changed,
            ),
            **dict.fromkeys(
                (
                    *(StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE),
                    StatementKind.DROP_DATABASE,
                ),
                KnownObjects.databases_changed,
            ),
            **dict.fromkeys(
                (StatementKind.ACCOUNT, StatementKind.FLUSH), KnownObjects.accounts_changed
            ),
            StatementKind.SET: KnownObjects.settings_changed,
        }
    )
)
"""Functions that forget answers after DDL, by its kind; other kinds make all be forgotten."""
