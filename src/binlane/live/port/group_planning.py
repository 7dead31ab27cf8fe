"""Plans of groups: the model's account of a session's groups, with all values that texts need.

The context of a statement is known when it runs, the group that it stands in when its transaction
ends. A statement of which a value is lacking is not planned: the binlog gets the group's rows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from binlane.binlogs.routing.plan import (
    EncodedEvent,
    Generated,
    GroupPlan,
    Part,
    Rows,
    Section,
    Text,
    basis_of,
)
from binlane.live.port.statement_context import StatementContext, complete
from binlane.log.codec.types import Flavor, HeaderFlag
from binlane.names import TableName
from binlane.statements.policy.resolution import ResolvedStatement
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plans import DraftPart, GroupDraft, RowsOf, TextOf
from binlane.statements.session.log_events import Body
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import DDL_KINDS, RowChange, StatementFacts, StatementKind
from binlane.statements.sql.schema import Table

_THREAD_SPECIFIC: Final = int(HeaderFlag.THREAD_SPECIFIC)
_CHANGING: Final = frozenset(
    (StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE, StatementKind.DELETE)
)
_INSERTING: Final = frozenset(
    (RowChange.INSERT, RowChange.REPLACE, RowChange.UPSERT, RowChange.LOAD)
)


class GroupPlanning:
    """The contexts of a transaction's statements, and the plans of its groups.

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

    def clear(self) -> None:
        """Forget a transaction that is over."""
        self._tables.clear()
        self._rewritten.clear()
        self._as_sent.clear()
        self._contexts.clear()
        self._generated.clear()

    def plan(
        self, draft: GroupDraft, definitions: Sequence[Definition], catalog: SchemaCatalog
    ) -> GroupPlan:
        """A group as the binlogs are to have it.

        Args:
            draft: The model's account of the group.
            definitions: Definitions of binlogs of which the model says so.
            catalog: Objects that the model knows.
        """
        sections = {number: place for place, (number, _) in enumerate(draft.sections)}
        for number, section in draft.sections:
            if number not in self._generated and (found := _generated_in(section, catalog)):
                self._generated[number] = found
        binlogs: dict[str, tuple[Part, ...]] = {}
        ends: dict[str, EncodedEvent | None] = {}
        for name, parts in draft.binlogs.items():
            made = self.parts(parts, sections)
            if made is None:
                continue
            if name in draft.ends:
                ends |= self.ends({name: draft.ends[name]}, parts)
            binlogs[name] = made
        return GroupPlan(
            sections=tuple(section for _, section in draft.sections),
            binlogs=binlogs,
            bases=bases(definitions, binlogs),
            ends=ends,
            image=draft.image,
        )

    def parts(
        self, drafts: Iterable[DraftPart], sections: Mapping[int, int]
    ) -> tuple[Part, ...] | None:
        """Give a binlog's parts of a group; None where a value of it is not known.

        Args:
            drafts: The model's parts of the group.
            sections: The places of the group's sections by the numbers of their statements.
        """
        found: list[Part] = []
        for draft in drafts:
            part = self._part(draft, sections)
            if part is None:
                return None
            found.append(part)
        return tuple(found)

    def _part(self, draft: DraftPart, sections: Mapping[int, int]) -> Part | None:
        if isinstance(draft, RowsOf):
            return Rows(sections[draft.number])
        context = self._contexts.get(draft.number)
        events = None if context is None else complete(draft.bodies, context, self._flavor)
        if context is None or events is None:
            return None
        if draft.uses_temporary:
            events = (*events[:-1], _of_session(events[-1]))
        section = sections.get(draft.number)
        timestamp = context.timestamp if section is None else 0
        return Text(
            events,
            section,
            self._generated.get(draft.number),
            timestamp=timestamp,
            tables=self._tables.get(draft.number, ()),
            uses_temporary=draft.uses_temporary,
            is_as_sent=draft.number in self._as_sent,
        )

    def ends(
        self, bodies: Mapping[str, Body | None], parts: Sequence[DraftPart]
    ) -> dict[str, EncodedEvent | None]:
        """The ends of binlogs' groups that are others than the source's, as far as they are known.

        Args:
            bodies: End events by binlog, as the model has them.
            parts: Parts of the group: the last statement's context is that of the end.
        """
        context = self._contexts.get(parts[-1].number) if parts else None
        found: dict[str, EncodedEvent | None] = {}
        for name, body in bodies.items():
            if body is None:
                found[name] = None
            elif context is not None and (events := complete((body,), context, self._flavor)):
                last = parts[-1]
                is_of_session = isinstance(last, TextOf) and last.uses_temporary
                found[name] = _of_session(events[0]) if is_of_session else events[0]
        return found


def _of_session(event: EncodedEvent) -> EncodedEvent:
    """An event that means something in its session's connection only.

    What a program's statements use is known of each of them, not of the program's context. MariaDB
    says it of all but RENAME, of which who reads its log needs to know it, too.
    """
    return event._replace(flags=event.flags | _THREAD_SPECIFIC)


def bases(definitions: Iterable[Definition], names: Container[str]) -> dict[str, int]:
    """With which definitions of some binlogs something was found out."""
    return {one.name: basis_of(one) for one in definitions if one.name in names}


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
