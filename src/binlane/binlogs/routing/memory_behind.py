"""The memory behind a statement, as every way of routing follows it: by its facts alone."""

from __future__ import annotations

from dataclasses import replace

from binlane.binlogs.routing.moves import after_statement
from binlane.binlogs.routing.outside_references import after_left_keys
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.table_births import births_after
from binlane.binlogs.routing.table_links import TableLinks
from binlane.binlogs.routing.vacant_children import with_vacant
from binlane.log.codec.query import QueryEvent
from binlane.positions import AnyGtid, Position
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects, StatementFacts


def memory_behind(
    memory: Memory,
    query: QueryEvent,
    facts: StatementFacts,
    scope: Scope,
    gtid: AnyGtid | None,
    *,
    since: Position | None,
) -> Memory:
    """Give the memory behind a statement, but for objects that are no tables.

    Args:
        memory: Routing's memory before the statement.
        query: Event of the statement, as it was logged.
        facts: Facts of the statement, whose effects have the names that the scope has.
        scope: Scope of the binlog to route to.
        gtid: GTID of the statement; None for one without.
        since: A position of the source before the statement; None where it is not known.
    """
    links = links_behind(memory.links, facts, scope)
    if links is not memory.links:
        memory = replace(memory, links=links)
    return beside_links(memory, query, facts.effects, scope, gtid, since=since)


def links_behind(before: TableLinks, facts: StatementFacts, scope: Scope) -> TableLinks:
    """The links behind a statement, those before if they are the same; of known tables those in scope."""
    links = before.after(facts, facts.effects)
    if links is before:
        return before
    links = links.folded if scope.ignores_case else links
    if links == before:
        return before
    known = frozenset(filter(scope.includes, links.known))
    return (
        before if known == before.known and links.is_like(before) else replace(links, known=known)
    )


def beside_links(
    memory: Memory,
    query: QueryEvent,
    effects: StatementEffects,
    scope: Scope,
    gtid: AnyGtid | None,
    *,
    since: Position | None,
) -> Memory:
    """Give the memory behind a statement, as `memory_behind`, where its links are those behind it."""
    memory = after_statement(memory, query, effects, scope)
    memory = births_after(memory, effects, scope, gtid, since=since)
    memory = after_left_keys(memory, effects, scope)
    return with_vacant(memory, effects, scope)
