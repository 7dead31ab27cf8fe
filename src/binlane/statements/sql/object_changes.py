"""Effects of a statement on the objects of a catalog: tables, databases, views, programs, accounts.

The module is a fold over the statement's tree. Names without a database get that of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.account_changes import change, give_routine, take_routine
from binlane.statements.sql.accounts import AccountName, Level, Situation, named
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.parser import Stopped, parse_package
from binlane.statements.sql.reading import read
from binlane.statements.sql.schema import (
    Parameter,
    Routine,
    Trigger,
    TriggerTime,
    View,
    body_of,
    small,
)
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_definitions import string_of
from binlane.statements.sql.table_effects import LOG_HANDLERS, TableChange, resolved
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree import definitions
from binlane.statements.sql.tree.account_statements import AccountStatement, NamedAccount
from binlane.statements.sql.tree.expressions import Literal, LiteralKind, Name
from binlane.statements.sql.tree.statements import Administration, Set, SetItem
from binlane.statements.sql.views import attributes

_GLOBAL_SCOPES: Final = ("global", "persist", "persist_only")
_PACKAGE_BEGINS: Final = re.compile(
    r"\b(?:AS|IS|PROCEDURE|FUNCTION|DECLARE|BEGIN|END)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChange(TableChange):
    """A statement that may change any objects of a server."""

    def create_view(self) -> None:
        """CREATE VIEW and ALTER VIEW."""
        name = self.effects.objects[0]
        if self.effects.if_exists and (name in self.store.views or name in self.store.tables):
            return
        node = self.node(definitions.CreateView)
        query = self.facts.text_of(node.query)
        is_mariadb = self.objects.flavor is Flavor.MARIADB
        kept = attributes(node, self.store.views.get(name), is_mariadb=is_mariadb)
        self.store.views[name] = View(
            name=name,
            facts=read(query, database=self.database, dialect=self.facts.dialect),
            columns=node.columns,
            database=self.database,
            definer=kept.definer or self._definer(node.definer),
            is_invoker=kept.is_invoker,
            algorithm=kept.algorithm,
        )
        self.store.databases.setdefault(name.database, None)

    def drop_views(self) -> None:
        """DROP VIEW."""
        for name in self.effects.objects:
            self.store.views.pop(name, None)

    # Programs ---------------------------------------------------------------------------------

    def create_trigger(self) -> None:
        """CREATE TRIGGER."""
        node = self.node(definitions.CreateTrigger)
        name = resolved(node.name, self.database)
        table = resolved(node.table, name.database)
        trigger = Trigger(
            dialect=self.facts.dialect,
            context=self.context,
            name=TableName(table.database, name.table),
            table=table,
            time=TriggerTime.BEFORE if node.time == "BEFORE" else TriggerTime.AFTER,
            events=frozenset(node.events),
            body=self._body(node.body_at),
            definer=self._definer(node.definer),
        )
        if self.effects.if_exists and self.objects.trigger(trigger.name) is not None:
            return
        self.store.drop_trigger(trigger.name)
        triggers = self.store.triggers.get(table, ())
        self.store.triggers[table] = _placed(triggers, trigger, node.order)

    def drop_triggers(self) -> None:
        """DROP TRIGGER."""
        for name in self.effects.objects:
            self.store.drop_trigger(name)

    def _body(self, at: int) -> str:
        """A body as it stands, without delimiters behind it."""
        return self.facts.text[self.facts.place(at) :].rstrip().rstrip(";").rstrip()

    def create_routine(self) -> None:
        """CREATE PROCEDURE and CREATE FUNCTION, also of a loadable one."""
        node = self.node(definitions.CreateRoutine)
        if node.soname:
            self.store.loadable.add(node.name.name.lower())
            return
        name = resolved(node.name, self.database)
        key = node.verb.endswith("FUNCTION"), small(name)
        if self.effects.if_exists and key in self.store.routines:
            return
        self.store.routines[key] = self._routine(name, node, self.facts)
        self.store.databases.setdefault(name.database, None)
        give_routine(self.store.accounts, self.account, _level(name, is_function=key[0]))

    def _routine(
        self,
        name: TableName,
        node: definitions.CreateRoutine,
        facts: StatementFacts,
        outer: tuple[str, ...] = (),
    ) -> Routine:
        """Give the routine that a definition makes."""
        text_of = facts.text_of
        return Routine(
            dialect=self.facts.dialect,
            context=self.context,
            name=name,
            is_function=node.verb.endswith("FUNCTION"),
            parameters=tuple(
                Parameter(
                    name=each.name,
                    type_text=text_of(each.type),
                    direction=each.direction,
                    default=None if each.default is None else text_of(each.default),
                )
                for each in node.parameters
            ),
            body=facts.text[facts.place(node.body_at) :].rstrip().rstrip(";").rstrip(),
            returns="" if node.returns is None else text_of(node.returns),
            charset=self.store.databases.get(name.database) or self.server_charset,
            definer=self._definer(node.definer),
            is_invoker="SQL SECURITY INVOKER" in node.characteristics,
            outer=outer,
            language=node.language,
        )

    def create_package(self) -> None:
        """CREATE PACKAGE, which leaves no older body, and CREATE PACKAGE BODY."""
        node = self.node(definitions.ObjectStatement)
        assert node.name is not None, "the grammar wants one"
        name = small(resolved(node.name, self.database))
        is_body = node.verb.endswith("BODY")
        if self.effects.if_exists and (body_of(name) if is_body else name) in self.store.packages:
            return
        self._drop_body(name)
        self.store.packages.add(name)
        if not is_body:
            return
        self.store.packages.add(body_of(name))
        rest = self.facts.text[self.facts.place(node.name.end) :]
        begins = _PACKAGE_BEGINS.search(rest)
        if begins is None:
            return
        try:
            package = parse_package(rest[begins.start() :], self.facts.dialect)
        except (Stopped, SqlSyntaxError):
            return
        for text in package.routines:
            facts = read(f"CREATE {text}", database=name.database, dialect=self.facts.dialect)
            if isinstance(facts.tree, definitions.CreateRoutine):
                own = facts.tree.name.name
                routine = self._routine(
                    TableName(name.database, f"{name.table}.{own}"),
                    facts.tree,
                    facts,
                    package.variables,
                )
                self.store.routines[routine.is_function, small(routine.name)] = routine

    def drop_packages(self) -> None:
        """DROP PACKAGE and DROP PACKAGE BODY."""
        for name in map(small, self.effects.objects):
            self._drop_body(name)
            if not self.facts.verb.endswith("BODY"):
                self.store.packages.discard(name)

    def _drop_body(self, name: TableName) -> None:
        """Have no body of a package any more."""
        self.store.packages.discard(body_of(name))
        for kind, routine in [*self.store.routines]:
            if routine.database == name.database and routine.table.startswith(f"{name.table}."):
                del self.store.routines[kind, routine]

    def alter_routine(self) -> None:
        """ALTER PROCEDURE and ALTER FUNCTION: whose privileges hold."""
        words = self.node(definitions.ObjectStatement).words
        is_function = self.facts.verb.endswith("FUNCTION")
        for name in self.effects.objects:
            routine = self.store.routines.get((is_function, small(name)))
            for security in ("INVOKER", "DEFINER"):
                if routine is not None and f"SQL SECURITY {security}" in words:
                    changed = replace(routine, is_invoker=security == "INVOKER")
                    self.store.routines[is_function, small(name)] = changed

    def drop_routines(self) -> None:
        """DROP PROCEDURE and DROP FUNCTION, also of a loadable one."""
        is_function = self.facts.verb.endswith("FUNCTION")
        for name in self.effects.objects:
            found = self.store.routines.pop((is_function, small(name)), None)
            take_routine(self.store.accounts, _level(name, is_function=is_function))
            if is_function and found is None:
                self.store.loadable.discard(name.table.lower())

    def create_event(self) -> None:
        """CREATE EVENT."""
        self.store.events.add(small(self.effects.objects[0]))

    def alter_event(self) -> None:
        """ALTER EVENT, which may give it another name."""
        names = [small(name) for name in self.effects.objects]
        if len(names) > 1 and names[0] in self.store.events:
            self.store.events.discard(names[0])
            self.store.events.add(names[1])

    def drop_events(self) -> None:
        """DROP EVENT."""
        self.store.events.difference_update(map(small, self.effects.objects))

    def create_library(self) -> None:
        """CREATE LIBRARY."""
        self.store.libraries.add(small(self.effects.objects[0]))

    def drop_library(self) -> None:
        """DROP LIBRARY."""
        self.store.libraries.discard(small(self.effects.objects[0]))

    def install(self) -> None:
        """INSTALL and UNINSTALL of plugins and components."""
        node = self.facts.tree
        names = node.names if isinstance(node, Administration) else ()
        found = {name.lower() for name in names}
        if self.facts.verb.startswith("INSTALL"):
            self.store.plugins |= found
        else:
            self.store.plugins -= found

    def change_reference_system(self) -> None:
        """CREATE and DROP SPATIAL REFERENCE SYSTEM."""
        node = self.node(definitions.ObjectStatement)
        is_made = self.effects.kind is StatementKind.CREATE_REFERENCE_SYSTEM
        self.store.reference_systems[node.number] = is_made

    # Accounts and settings --------------------------------------------------------------------

    def change_accounts(self) -> None:
        """Users and roles, and what they are granted."""
        node = self.facts.tree
        if isinstance(node, AccountStatement):
            self.store.accounts = change(self.store.accounts, node, self._situation()).accounts

    def _situation(self) -> Situation:
        return Situation(
            is_mariadb=self.objects.flavor is Flavor.MARIADB,
            database=self.database,
            current=self.account,
            is_complete=self.knows_accounts,
        )

    def _definer(self, account: NamedAccount | None) -> AccountName:
        """Give the account whose privileges hold in a view or program."""
        if account is None:
            return self.account
        return named(account, self.store.accounts, self._situation())

    def set_globals(self) -> None:
        """SET GLOBAL; values of one session are no objects."""
        node = self.facts.tree
        for item in node.items if isinstance(node, Set) else ():
            if item.scope in _GLOBAL_SCOPES:
                self.store.settings[item.name] = self._setting(item)

    def _setting(self, item: SetItem) -> str:
        node = item.value
        if node is None:
            return item.words or "DEFAULT"
        if isinstance(node, Literal) and node.kind is LiteralKind.STRING:
            return string_of(node, self.facts)
        if isinstance(node, Name):
            return ".".join(node.parts)
        return self.facts.text_of(node)


def _level(routine: TableName, *, is_function: bool) -> Level:
    """Give the level at which the privileges of a routine are granted."""
    kind = "FUNCTION" if is_function else "PROCEDURE"
    return kind, routine.database, routine.table.lower()


def _placed(
    triggers: Sequence[Trigger], new: Trigger, order: tuple[str, str] | None
) -> tuple[Trigger, ...]:
    """A table's triggers with a new one behind, or where FOLLOWS and PRECEDES put it."""
    names = [each.name.table for each in triggers]
    index = len(names)
    if order is not None and order[1] in names:
        index = names.index(order[1]) + (order[0] == "FOLLOWS")
    return (*triggers[:index], new, *triggers[index:])


SERVER_HANDLERS: Final[Mapping[StatementKind, Callable[[ObjectChange], None]]] = MappingProxyType(
    {
        **LOG_HANDLERS,
        StatementKind.CREATE_VIEW: ObjectChange.create_view,
        StatementKind.ALTER_VIEW: ObjectChange.create_view,
        StatementKind.DROP_VIEW: ObjectChange.drop_views,
        StatementKind.CREATE_TRIGGER: ObjectChange.create_trigger,
        StatementKind.DROP_TRIGGER: ObjectChange.drop_triggers,
        StatementKind.CREATE_ROUTINE: ObjectChange.create_routine,
        StatementKind.ALTER_ROUTINE: ObjectChange.alter_routine,
        StatementKind.DROP_ROUTINE: ObjectChange.drop_routines,
        StatementKind.CREATE_PACKAGE: ObjectChange.create_package,
        StatementKind.DROP_PACKAGE: ObjectChange.drop_packages,
        StatementKind.CREATE_EVENT: ObjectChange.create_event,
        StatementKind.ALTER_EVENT: ObjectChange.alter_event,
        StatementKind.DROP_EVENT: ObjectChange.drop_events,
        StatementKind.CREATE_LIBRARY: ObjectChange.create_library,
        StatementKind.DROP_LIBRARY: ObjectChange.drop_library,
        StatementKind.CREATE_REFERENCE_SYSTEM: ObjectChange.change_reference_system,
        StatementKind.DROP_REFERENCE_SYSTEM: ObjectChange.change_reference_system,
        StatementKind.ACCOUNT: ObjectChange.change_accounts,
        StatementKind.SET: ObjectChange.set_globals,
        StatementKind.SESSION: ObjectChange.install,
    }
)
