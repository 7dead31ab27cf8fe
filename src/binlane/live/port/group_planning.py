"""Plans of groups: the model's account of a session's groups, with all values that texts need.

The context of a statement is known when it runs, the group that it stands in when its transaction
ends. A statement of which a value is lacking is not planned: the binlog gets the group's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from binlane.live.port.statement_context import StatementContext, complete
from binlane.log.codec.types import Flavor, HeaderFlag
from binlane.log.grouping.sections import Section
from binlane.names import TableName
from binlane.statements.policy.resolution import ResolvedStatement
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plan import (
    EncodedEvent,
    Generated,
    GroupPlan,
    Part,
    RowsPart,
    TextPart,
    basis_of,
)
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import RowChange, StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.statement_kinds import DDL_KINDS, StatementKind

_THREAD_SPECIFIC: Final = int(HeaderFlag.THREAD_SPECIFIC)
_CHANGING: Final = frozenset(
    (StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE, StatementKind.DELETE)
)
_INSERTING: Final = frozenset(
    (RowChange.INSERT, RowChange.REPLACE, RowChange.UPSERT, RowChange.LOAD)
)


class WaitingWrite(NamedTuple):
    """A write that waits for the end of its transaction, and was sent by a template.

    Attributes:
        number: Number of the statement in its session.
        template: The template, which is compared by identity.
        events: Bytes of the events that binlogs have of it as text.
        text: Text of the statement, as the client sent it.
        version: Version of the source's objects with which it was judged.
    """

    number: int
    template: object
    events: bytes
    text: str
    version: object


class GroupPlanning:
    """The contexts of a transaction's statements, and the plans of its groups.

    Attributes:
        writes: Writes of the transaction that were sent by their templates.
        judged: Texts of other statements of it that are in plans, with the version of the objects with which each
            was judged.
        is_outdated: True if some statement of it was judged before changes that were heard of since.

    Args:
        flavor: Flavor of the source server.
    """

    def __init__(self, flavor: Flavor) -> None:
        self._flavor = flavor
        self._contexts: dict[int, StatementContext] = {}
        self._generated: dict[int, Generated] = {}
        self._tables: dict[int, tuple[TableName, ...]] = {}
        self._rewritten: set[int] = set()
        self._as_sent: set[int] = set()
        self.writes: list[WaitingWrite] = []
        self.judged: list[tuple[str, object]] = []
        self.is_outdated = False

    def know(self, numbers: Iterable[int], context: StatementContext) -> None:
        """Note the context of a statement, and of those that it runs, by their numbers."""
        self._contexts.update(dict.fromkeys(numbers, context))

    def know_generated(self, number: int, resolved: ResolvedStatement) -> None:
        """Note where AUTO_INCREMENT values stand that the server may choose for a statement."""
        found = _generated(resolved)
        if found is not None:
            self._generated[number] = found

    def know_rewritten(self, number: int) -> None:
        """Note that the source runs a statement in other words."""
        self._rewritten.add(number)

    def know_words(self, number: int, facts: StatementFacts, resolved: ResolvedStatement) -> None:
        """Note if the source writes a statement before its rows in the words of its text.

        Of one that runs functions or triggers it writes what ran first.
        """
        if (
            number not in self._rewritten
            and facts.effects.kind in _CHANGING
            and not resolved.functions
            and not any(one.is_prelocked for one in resolved.accesses)
        ):
            self._as_sent.add(number)

    def know_tables(self, number: int, facts: StatementFacts, resolved: ResolvedStatement) -> None:
        """Note which tables a statement concerns, where its text alone does not say it.

        Of a view those that it stands for; with those of functions and triggers. Foreign keys are
        no matter of the statement.
        """
        effects = facts.effects
        makes_filled = effects.kind is StatementKind.CREATE_TABLE_SELECT
        if resolved.notes or resolved.errors or resolved.unknown_tables:
            return
        if effects.kind in DDL_KINDS and not makes_filled:
            return  # they are about what they name
        opened = dict.fromkeys(effects.writes if makes_filled else ())
        opened |= dict.fromkeys(one.name for one in resolved.accesses if not one.is_foreign_key)
        if not opened.keys() <= frozenset(effects.involved_tables):
            self._tables[number] = tuple(opened)

    def know_alike(self, number: int, context: StatementContext, part: TextPart) -> None:
        """Note all of a statement that is known from others like it.

        Args:
            number: Number of the statement in its session.
            context: Context in which the statement ran.
            part: The text of a statement that is alike.
        """
        self._contexts[number] = context
        if part.generated is not None:
            self._generated[number] = part.generated
        if part.tables:
            self._tables[number] = part.tables
        if part.is_as_sent:
            self._as_sent.add(number)

    @property
    def is_clear(self) -> bool:
        """True if nothing is known of a transaction."""
        return not (self.writes or self.judged or self._contexts or self._generated or self._tables)

    def clear(self) -> None:
        """Forget a transaction that is over."""
        self.writes.clear()
        self.judged.clear()
        self.is_outdated = False
        self._tables.clear()
        self._rewritten.clear()
        self._as_sent.clear()
        self._contexts.clear()
        self._generated.clear()

    def complete(
        self, plan: GroupPlan, definitions: Sequence[Definition], catalog: SchemaCatalog
    ) -> GroupPlan:
        """Complete a plan of the model with all values that texts need.

        Args:
            plan: The model's plan of a group.
            definitions: Definitions of binlogs of which the model says so.
            catalog: Objects that the model knows.

        Returns:
            The plan, without the binlogs of which a value is not known.
        """
        for number, section in zip(plan.numbers, plan.sections, strict=True):
            if number not in self._generated and (found := _generated_in(section, catalog)):
                self._generated[number] = found
        binlogs: dict[str, tuple[Part, ...]] = {}
        ends: dict[str, TextPart | None] = {}
        for name, parts in plan.binlogs.items():
            completed = self.parts(parts)
            if completed is None:
                continue
            binlogs[name] = completed
            if name in plan.ends:
                end = plan.ends[name]
                events = None if end is None else self._events(end)
                if end is None or events is not None:
                    ends[name] = None if events is None else TextPart(events)
        return GroupPlan(
            sections=plan.sections,
            binlogs=binlogs,
            bases={one.name: basis_of(one) for one in definitions if one.name in binlogs},
            ends=ends,
            image=plan.image,
        )

    def parts(self, parts: Iterable[Part]) -> tuple[Part, ...] | None:
        """Complete a binlog's parts of a group; None where a value of one is not known."""
        found: list[Part] = []
        for part in parts:
            completed = self._part(part)
            if completed is None:
                return None
            found.append(completed)
        return tuple(found)

    def _part(self, part: Part) -> Part | None:
        if isinstance(part, RowsPart):
            return RowsPart(part.section)
        number, section = part.number, part.section
        events = self._events(part)
        if events is None:
            return None
        return TextPart(
            events,
            section,
            self._generated.get(number),
            timestamp=self._contexts[number].timestamp if section is None else 0,
            tables=self._tables.get(number, ()),
            uses_temporary=part.uses_temporary,
            is_as_sent=number in self._as_sent,
        )

    def _events(self, text: TextPart) -> tuple[EncodedEvent, ...] | None:
        """Return the events of a text with all values; None where one is not known."""
        context = self._contexts.get(text.number)
        events = None if context is None else complete(text.bodies, context, self._flavor)
        if events and text.uses_temporary:
            return (*events[:-1], _of_session(events[-1]))
        return events


def _of_session(event: EncodedEvent) -> EncodedEvent:
    """An event that means something in its session's connection only.

    What a program's statements use is known of each of them, not of the program's context. MariaDB
    says it of all but RENAME, of which who reads its log needs to know it, too.
    """
    return event._replace(flags=event.flags | _THREAD_SPECIFIC)


def _generated_in(section: Section, catalog: SchemaCatalog) -> Generated | None:
    """Find the column whose AUTO_INCREMENT values a statement of a program was given."""
    tables = {name for piece in section for kind, name in piece.changes if kind == "insert"}
    found = [place for name in tables if (place := _place(catalog.table(name)))]
    return found[0] if len(found) == 1 else None


def _generated(resolved: ResolvedStatement) -> Generated | None:
    for access in resolved.accesses:
        if not access.is_prelocked and access.changes & _INSERTING:
            place = _place(access.table)
            if place is not None:
                return place
    return None


def _place(table: Table | None) -> Generated | None:
    """The AUTO_INCREMENT column of a table."""
    column = None if table is None else table.auto_increment
    if table is None or column is None:
        return None
    names = [one.name.lower() for one in table.definition.columns]
    return Generated(table.name, names.index(column.lower()))
