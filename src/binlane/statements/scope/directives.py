"""Scopes from the clauses of CREATE and ALTER BINLOG, and contradictions between the clauses.

A clause that another one of the same statement makes void is an error, and so is a list entry that
can never log anything: a binlog does exactly as the user wrote, or the user gets an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from binlane.errors import DefinitionError
from binlane.names import TableName, quote
from binlane.statements.scope.scope import Scope, ScopeList, ScopeObject

_CLAUSE_LENGTH_MAX: Final = 100
"""Characters of a clause that an error shows; the name in question stands beside it."""


class Action(Enum):
    """Effect of a directive on its list."""

    SET = "SET"
    """The plain form: both lists begin anew."""
    ADD = "ADD"
    DROP = "DROP"


@dataclass(frozen=True, slots=True)
class Directive:
    """One clause on a scope.

    Attributes:
        objects: Databases and tables of the list; None for ALL.
    """

    action: Action
    which: ScopeList
    objects: tuple[ScopeObject, ...] | None

    def __str__(self) -> str:
        verb = "" if self.action is Action.SET else f"{self.action.value} "
        if self.objects is None:
            return f"{verb}{self.which.value} ALL"
        listed = ", ".join(map(quoted, self.objects))
        if len(listed) > _CLAUSE_LENGTH_MAX:
            listed = f"{listed[:_CLAUSE_LENGTH_MAX]}…"
        return f"{verb}{self.which.value}({listed})"


def quoted(name: ScopeObject) -> str:
    """An object as SQL has it."""
    return quote(name) if isinstance(name, str) else str(name)


def created_scope(directives: Sequence[Directive], *, ignores_case: bool = False) -> Scope:
    """The scope of a new binlog.

    Args:
        directives: The clauses of CREATE BINLOG; nothing exists yet that one could reset, so their
            order means nothing.
        ignores_case: Value of `Scope.ignores_case` for the new scope.

    Raises:
        DefinitionError: If the clauses contradict each other; the message names them.
    """
    scope = filter_scope(directives, ignores_case=ignores_case)
    if directives:
        _check_every_entry(scope)
    return scope


def filter_scope(directives: Sequence[Directive], *, ignores_case: bool = False) -> Scope:
    """The scope of lists that select for once, where IGNORE may take away from LOG what it names.

    Raises:
        DefinitionError: If one clause makes another void; the message names them.
    """
    for which in ScopeList:
        clauses = [one for one in directives if one.which is which]
        if len(clauses) > 1:
            raise _contradiction(clauses[1], clauses[0], f"a binlog has one {which.value} list")
    nothing = next((one for one in directives if str(one) == "IGNORE ALL"), None)
    others = [one for one in directives if one is not nothing]
    if nothing is not None and others:
        raise _contradiction(nothing, others[0], "with it nothing is logged")
    everything = Scope.everything(ignores_case=ignores_case)
    in_order = sorted(directives, key=lambda one: one.which is ScopeList.IGNORE)
    return _applied(everything, in_order)


def altered_scope(scope: Scope, directives: Sequence[Directive]) -> Scope:
    """A scope after the clauses of ALTER BINLOG, from left to right.

    A plain LOG or IGNORE gets rid of what was there, except that a LOG list and an IGNORE list
    next to each other make one configuration, as in CREATE BINLOG.

    Raises:
        DefinitionError: If clauses contradict the scope or each other; the message names the
        clause.
    """
    scope = _applied(scope, directives)
    if directives:
        _check_every_entry(scope)
    return scope


def _applied(scope: Scope, directives: Sequence[Directive]) -> Scope:
    done: list[Directive] = []
    for directive in directives:
        _check_names(scope, directive)
        if directive.action is Action.SET:
            scope = _reset(scope, directive, done)
        else:
            _check_not_taken_back(scope, directive, done)
            change = _added if directive.action is Action.ADD else _dropped
            scope = change(scope, directive)
        done.append(directive)
    return scope


def _reset(scope: Scope, directive: Directive, done: Sequence[Directive]) -> Scope:
    """The scope after a plain LOG or IGNORE."""
    is_beside = len(done) == 1 and _belong_together(done[0], directive)
    if done and not is_beside:
        raise DefinitionError(
            f"{directive} overwrites {done[-1]} of the same statement",
            hint=f"leave {done[-1]} out, or say ADD {directive}",
        )
    which, objects = directive.which, directive.objects
    ignores_case = scope.ignores_case
    if objects is None and which is ScopeList.IGNORE:
        return Scope.nothing(ignores_case=ignores_case)
    if not is_beside:
        scope = Scope.everything(ignores_case=ignores_case)
    if objects is not None:
        scope = scope.with_list(which, objects)
        if which is ScopeList.LOG:
            scope = replace(scope, log_all=False)
    return scope


def _belong_together(first: Directive, second: Directive) -> bool:
    """True if two plain clauses make one configuration."""
    if first.action is not Action.SET or first.which is second.which:
        return False
    return second.objects is not None and str(first) != "IGNORE ALL"


def _check_names(scope: Scope, directive: Directive) -> None:
    """Refuse a list that names something twice."""
    counts = Counter(map(scope.as_listed, directive.objects or ()))
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        raise DefinitionError(
            f"{directive} names {quoted(twice)} twice", hint=f"name {quoted(twice)} once"
        )


def _check_not_taken_back(scope: Scope, directive: Directive, done: Sequence[Directive]) -> None:
    """Refuse an ADD or DROP of what an earlier clause has dropped or set."""
    names = set(map(scope.as_listed, directive.objects or ()))
    for earlier in done:
        is_opposite = (earlier.action is Action.DROP) is not (directive.action is Action.DROP)
        if earlier.which is not directive.which or not is_opposite:
            continue
        both = names.intersection(map(scope.as_listed, earlier.objects or ()))
        if both:
            name = quoted(min(both, key=quoted))
            raise DefinitionError(
                f"{directive} takes {earlier} of the same statement back",
                hint=f"leave {name} out of both",
            )


def _added(scope: Scope, directive: Directive) -> Scope:
    which, objects = directive.which, directive.objects or ()
    if which is ScopeList.LOG and scope.log_all:
        raise DefinitionError(
            f"{directive} adds nothing: the binlog logs everything that it does not ignore",
            hint=f"LOG({', '.join(map(quoted, objects))}) logs nothing else; "
            "DROP IGNORE(…) logs again what was left out",
        )
    listed = [name for name in objects if scope.as_listed(name) in scope.objects(which)]
    if listed:
        raise DefinitionError(
            f"{directive}: the {which.value} list has {quoted(listed[0])} already",
            hint=f"it holds: {scope.render(which)}",
        )
    return scope.added(which, objects)


def _dropped(scope: Scope, directive: Directive) -> Scope:
    which, objects = directive.which, directive.objects or ()
    missing = [name for name in objects if scope.as_listed(name) not in scope.objects(which)]
    if missing:
        raise DefinitionError(
            f"{directive}: the {which.value} list has no {quoted(missing[0])}",
            hint=f"it holds: {scope.render(which) or 'nothing'}",
        )
    return scope.dropped(which, objects)


def _check_every_entry(scope: Scope) -> None:
    """Refuse a scope with an entry in its LOG list that logs nothing."""
    for entry, hidden_by in _hidden(scope):
        raise DefinitionError(
            f"LOG({quoted(entry)}) contradicts IGNORE({quoted(hidden_by)}): what is in both lists is "
            "never logged",
            hint=f"leave {quoted(entry)} out of LOG or {quoted(hidden_by)} out of IGNORE",
        )


def _hidden(scope: Scope) -> Iterator[tuple[ScopeObject, ScopeObject]]:
    """Yield each entry of the LOG list that is never logged, with the IGNORE entry that hides it."""
    for entry in sorted(scope.objects(ScopeList.LOG), key=quoted):
        if isinstance(entry, TableName) and entry in scope.ignore_tables:
            yield entry, entry
        database = entry if isinstance(entry, str) else entry.database
        # `system` is another name of `mysql`, in either list.
        names = scope.names_of(database)
        yield from ((entry, name) for name in names if name in scope.ignore_databases)


def _contradiction(one: Directive, other: Directive, why: str) -> DefinitionError:
    return DefinitionError(
        f"{one} contradicts {other}: {why}", hint="leave one of the two clauses out"
    )
