"""What statements assign to local and user variables: SET, SELECT … INTO, `:=`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binlane.programs.environment import RoutineEnvironment, SessionEnvironment
from binlane.programs.host import Host
from binlane.programs.interpreter import condition_of
from binlane.sql.evaluation.evaluator import evaluate, has_aggregate, possible_values
from binlane.sql.evaluation.statements import user_variables_assigned
from binlane.sql.evaluation.values import UNKNOWN, Value
from binlane.sql.facts import Assignment, StatementFacts, VariableScope
from binlane.sql.tree.expressions import (
    Assign,
    Into,
    Name,
    Node,
    Query,
    Select,
    UserVariable,
    children,
)
from binlane.sql.tree.statements import CallProcedure, LoadData, QueryStatement, SetStatement


class Assignments:
    """SET, SELECT … INTO and `:=`: local and user variables."""

    def __init__(self, host: Host) -> None:
        """Work for a session."""
        self._host = host

    def of_set(self, facts: StatementFacts, environment: SessionEnvironment) -> None:
        """Do what SET assigns to local and user variables; system variables are left out."""
        waiting: list[tuple[Assignment, Value]] = []
        for assignment in facts.assignments:
            if not self.is_variable(assignment, environment):
                continue
            value = self.value(assignment, facts, environment)
            if assignment.name.startswith("@"):
                waiting.append((assignment, value))
            else:
                self.store(assignment, value, facts, environment)
        # User variables are set when all values are known: `SET @a = 1, @b = @a` reads the old.
        for assignment, value in waiting:
            self.store(assignment, value, facts, environment)

    def is_variable(self, assignment: Assignment, environment: SessionEnvironment) -> bool:
        """Whether a local or user variable is set, not one of the system."""
        if assignment.scope is not VariableScope.UNSAID or assignment.name.startswith("@@"):
            return False
        if assignment.name.startswith("@"):
            return True
        return isinstance(environment, RoutineEnvironment) and environment.has(assignment.name)

    def value(
        self, assignment: Assignment, facts: StatementFacts, environment: SessionEnvironment
    ) -> Value:
        """What is assigned."""
        if assignment.node is None:
            return UNKNOWN
        return evaluate(assignment.node, facts, environment)

    def store(
        self,
        assignment: Assignment,
        value: Value,
        facts: StatementFacts,
        environment: SessionEnvironment,
    ) -> None:
        """Give a variable its value, or all that it can be."""
        if assignment.name.startswith("@"):
            node = assignment.node
            name = assignment.name[1:]
            possible = None
            if value is UNKNOWN and node is not None:
                possible = possible_values(node, facts, environment)
            if value is UNKNOWN:
                give_one_of(name, possible, environment)
            else:
                environment.assign_user_variable(name, value)
        elif isinstance(environment, RoutineEnvironment):
            environment.assign(assignment.name, value)

    def in_expressions(self, facts: StatementFacts, environment: SessionEnvironment) -> None:
        """Do what `:=` and LOAD DATA assign in a statement; what depends on rows is unknown."""
        if not facts.user_variables:
            return
        reads_rows = bool(facts.tables) and not facts.row_count
        if reads_rows or isinstance(facts.tree, LoadData):
            for name in user_variables_assigned(facts.tree):
                environment.assign_user_variable(name, UNKNOWN)
            return
        for node in _assigning(facts.tree):
            evaluate(node, facts, environment)

    def of_select(self, facts: StatementFacts, environment: SessionEnvironment) -> None:
        """Do what SELECT … INTO assigns; what comes from tables is unknown."""
        query = query_of(own_statement(facts))
        if query is None or query.into is None:
            return
        targets, select = query.into.variables, query.body
        if not isinstance(select, Select) or len(select.items) != len(targets):
            for target in targets:
                give(target, UNKNOWN, environment)
            return
        nodes = [item.value for item in select.items]
        if not select.tables:
            for target, value in zip(
                targets, [evaluate(node, facts, environment) for node in nodes], strict=True
            ):
                give(target, value, environment)
            return
        choices = [
            possible_values(node, facts, environment) if isinstance(target, UserVariable) else None
            for target, node in zip(targets, nodes, strict=True)
        ]
        for target, choice in zip(targets, choices, strict=True):
            if choice is not None and isinstance(target, UserVariable):
                before = environment.user_variable_values(target.name)
                if _is_one_row(query, select):
                    before = ()
                values = None if before is None else (*choice, *before)
                give_one_of(target.name, values, environment)
            else:
                give(target, UNKNOWN, environment)


def assigned_first(statement: Node) -> frozenset[str]:
    """The user variables that a statement sets by `:=` before it reads them, in its text."""
    reads: dict[str, int] = {}
    assigned: dict[str, int] = {}
    for node in _variables(statement):
        if isinstance(node, Assign):
            name = node.target.name
            assigned[name] = min(node.end, assigned.get(name, node.end))
        else:
            reads[node.name] = min(node.at, reads.get(node.name, node.at))
    return frozenset(name for name, end in assigned.items() if name in reads and reads[name] >= end)


def _variables(node: Node) -> Iterator[Assign | UserVariable]:
    """Where user variables are read and assigned."""
    if isinstance(node, UserVariable):
        yield node
    elif isinstance(node, Assign):
        yield node
        yield from _variables(node.value)
    elif not isinstance(node, Into):
        for each in children(node):
            yield from _variables(each)


def give(target: Node, value: Value, environment: SessionEnvironment) -> None:
    """Store a value in a user or local variable."""
    if isinstance(target, UserVariable):
        environment.assign_user_variable(target.name, value)
    elif isinstance(target, Name) and isinstance(environment, RoutineEnvironment):
        environment.assign(".".join(target.parts), value)


def give_one_of(name: str, values: Sequence[Value] | None, environment: SessionEnvironment) -> None:
    """Store in a user variable one of several values; None if they are not known."""
    values = None if values is None else tuple(dict.fromkeys(values))
    if values is not None and len(values) == 1:
        environment.assign_user_variable(name, values[0])
        return
    environment.assign_user_variable(name, UNKNOWN)
    if values is not None:
        environment.host.programs.possible[name] = values


def _assigning(node: Node) -> Iterator[Assign]:
    """The outermost assignments in a statement, in the order of the text."""
    if isinstance(node, Assign):
        yield node
    elif not isinstance(node, Into):
        for each in children(node):
            yield from _assigning(each)


def query_of(statement: Node) -> Query | None:
    """The query of a SELECT."""
    if isinstance(statement, QueryStatement):
        return statement.query
    return statement if isinstance(statement, Query) else None


def has_no_row(node: Node, environment: RoutineEnvironment) -> bool:
    """Whether SELECT … INTO finds nothing on this way; asked only where a handler waits for that."""
    query = query_of(node)
    if query is None or query.into is None or not environment.handles_no_row():
        return False
    select = query.body
    if isinstance(select, Select) and (not select.tables or _is_one_row(query, select)):
        return False
    return environment.host.programs.ways.choose(condition_of(node, environment)) == 1


def _is_one_row(query: Query, select: Select) -> bool:
    """Whether a query is one of aggregates alone, which always has one row."""
    has_groups = select.group_by or select.having is not None or query.limit is not None
    return not has_groups and any(has_aggregate(item.value) for item in select.items)


def own_statement(facts: StatementFacts) -> Node:
    """The statement that is meant, behind SET STATEMENT … FOR."""
    tree = facts.tree
    while isinstance(tree, SetStatement):
        tree = tree.statement
    return tree


def call_of(facts: StatementFacts) -> CallProcedure:
    """A CALL."""
    tree = own_statement(facts)
    assert isinstance(tree, CallProcedure)
    return tree
