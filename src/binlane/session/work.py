"""What a statement does to the engines of its tables."""

from __future__ import annotations

from collections.abc import Sequence

from binlane.names import TableName
from binlane.policy.access import ResolvedStatement
from binlane.policy.engines import traits
from binlane.policy.server import Server
from binlane.session.programs.host import RowRun
from binlane.session.transaction import Work
from binlane.sql.schema import Table


def work_of(server: Server, resolved: ResolvedStatement, runs: Sequence[RowRun]) -> Work:
    """What a statement does to the engines of its tables."""
    work = Work()
    tables: dict[TableName, Table] = {}
    for access in resolved.accesses:
        tables.setdefault(access.name, access.table)
        engine = access.table.engine.upper()
        known = traits(access.table, server)
        if known.takes_part:
            work.uses(engine, has_two_phases=known.has_two_phases)
    for run in runs:
        table = tables[run.table]
        if not traits(table, server).has_rollback:
            work.changed_nontransactional = True
        elif not table.is_temporary and table.engine.upper() in work.engines:
            # Engines are not told of changes of temporary tables: they are not committed in
            # two phases.
            work.engines[table.engine.upper()].is_changed = True
    return work


def note_tries(server: Server, resolved: ResolvedStatement, work: Work) -> None:
    """Note that engines were given rows: they take part in the commit, kept or not."""
    for access in resolved.accesses:
        table = access.table
        name = table.engine.upper()
        if (
            access.changes
            and not access.is_prelocked
            and not table.is_temporary
            and name in work.engines
            and traits(table, server).has_rollback
        ):
            work.engines[name].is_changed = True
