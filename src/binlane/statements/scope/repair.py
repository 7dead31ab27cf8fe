"""Repairs of a refused statement: ALTER BINLOG statements that put an object in scope."""

from __future__ import annotations

from collections.abc import Iterator

from binlane.names import TableName, quote
from binlane.statements.scope.changes import ObjectKind, UsedObject
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope, ScopeList, ScopeObject


def statement_to_log(definition: Definition, used: UsedObject) -> str:
    """The ALTER BINLOG after which a binlog logs an object; empty if it does already.

    A table is added as a table. Where the IGNORE list hides the object, what hides it is dropped.
    """
    scope = definition.scope
    directives: list[str] = []
    if not used.is_in(scope):
        for name in _hiding(scope, used):
            scope = scope.dropped(ScopeList.IGNORE, [name])
            directives.append(f"DROP IGNORE({_quoted(name)})")
    if not used.is_in(scope):
        wanted = used.name if used.kind is ObjectKind.TABLE else used.database
        scope = scope.added(ScopeList.LOG, [wanted])
        directives.append(f"ADD LOG({_quoted(wanted)})")
    assert used.is_in(scope)
    return f"ALTER BINLOG '{definition.name}' {', '.join(directives)}" if directives else ""


def _hiding(scope: Scope, used: UsedObject) -> Iterator[ScopeObject]:
    """The objects of the IGNORE list by which a scope does not log an object."""
    name = scope.as_listed(used.name)
    if used.kind is ObjectKind.TABLE and name in scope.ignore_tables:
        yield name
    yield from (name for name in scope.names_of(used.database) if name in scope.ignore_databases)


def _quoted(name: ScopeObject) -> str:
    return str(name) if isinstance(name, TableName) else quote(name)
