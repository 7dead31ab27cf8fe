"""Values that statements of programs give to variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binlane.statements.programs.environment import RoutineEnvironment, SessionEnvironment
from binlane.statements.programs.ways import DataCondition
from binlane.statements.sql.evaluation.evaluator import evaluate, has_aggregate, possible_values
from binlane.statements.sql.evaluation.statements import (
    user_variables_assigned,
    user_variables_named,
    user_variables_read,
)
from binlane.statements.sql.evaluation.values import UNKNOWN, Value
from binlane.statements.sql.facts import StatementFacts, VariableAssignment, VariableScope
from binlane.statements.sql.tree.expressions import (
    Assign,
    Into,
    Name,
    Node,
    Query,
    Select,
    UserVariable,
    children,
)
from binlane.statements.sql.tree.statements import (
    CallProcedure,
    LoadData,
    QueryStatement,
    Set,
    Update,
)


def assign_by_set(facts: StatementFacts, environment: SessionEnvironment) -> None:
    """Carry out SET for local and user variables; system variables are left out."""
    waiting: list[tuple[VariableAssignment, Value]] = []
    for assignment in facts.assignments:
        if not is_variable(assignment, environment):
            continue
        value = assigned_value(assignment, facts, environment)
        if assignment.name.startswith("@"):
            waiting.append((assignment, value))
        else:
            assign(assignment, value, facts, environment)
    # User variables are set when all values are known: `SET @a = 1, @b = @a` reads the old.
    for assignment, value in waiting:
        assign(assignment, value, facts, environment)


def is_variable(assignment: VariableAssignment, environment: SessionEnvironment) -> bool:
    """True if a local or user variable is set, not a system variable."""
    if assignment.scope is not VariableScope.UNSAID or assignment.name.startswith("@@"):
        return False
    if assignment.name.startswith("@"):
        return True
    return isinstance(environment, RoutineEnvironment) and environment.has(assignment.name)


def assigned_value(
    assignment: VariableAssignment, facts: StatementFacts, environment: SessionEnvironment
) -> Value:
    """Return the value of an assignment."""
    if assignment.node is None:
        return UNKNOWN
    return evaluate(assignment.node, facts, environment)


def assign(
    assignment: VariableAssignment,
    value: Value,
    facts: StatementFacts,
    environment: SessionEnvironment,
) -> None:
    """Give a variable its value, or all that it can be."""
    if assignment.name.startswith("@"):
        node, name = assignment.node, assignment.name[1:]
        if value is not UNKNOWN:
            environment.assign_user_variable(name, value)
        else:
            possible = None if node is None else possible_values(node, facts, environment)
            give_one_of(name, possible, environment)
    elif isinstance(environment, RoutineEnvironment):
        environment.assign(assignment.name, value)


def name_variables(facts: StatementFacts, environment: SessionEnvironment) -> None:
    """Register the names of user variables that a statement sets first, as the statement writes them."""
    if not facts.user_variables and not isinstance(facts.tree, Set):
        return
    names = user_variables_named(facts.whole, facts)
    tree = facts.tree
    if environment.is_mariadb and isinstance(tree, Update) and tree.where is not None:
        names = [*user_variables_read(tree.where, facts), *names]  # as it looks at them
    for written in names:
        environment.host.programs.named(written)


def assign_in_expressions(facts: StatementFacts, environment: SessionEnvironment) -> None:
    """Carry out the assignments of `:=` and LOAD DATA; values that depend on rows are unknown."""
    is_load = isinstance(facts.tree, LoadData)
    if not (facts.user_variables or is_load):
        return
    reads_rows = bool(facts.tables) and not facts.row_count
    if reads_rows or is_load:
        for name in user_variables_assigned(facts.tree):
            environment.assign_user_variable(name, UNKNOWN)
        return
    for node in _assigning(facts.whole):
        evaluate(node, facts, environment)


def assign_by_select(facts: StatementFacts, environment: SessionEnvironment) -> None:
    """Carry out the assignments of SELECT … INTO; values from tables are unknown."""
    query = query_of(facts.tree)
    if query is None or query.into is None:
        return
    targets, select = query.into.variables, query.body
    if not isinstance(select, Select) or len(select.items) != len(targets):
        for target in targets:
            give(target, UNKNOWN, environment)
        return
    nodes = [item.value for item in select.items]
    if not select.tables:
        values = [evaluate(node, facts, environment) for node in nodes]
        for target, value in zip(targets, values, strict=True):
            give(target, value, environment)
        return
    choices = [
        possible_values(node, facts, environment) if isinstance(target, UserVariable) else None
        for target, node in zip(targets, nodes, strict=True)
    ]
    for target, choice in zip(targets, choices, strict=True):
        if choice is not None and isinstance(target, UserVariable):
            is_set = _is_one_row(query, select)
            before = () if is_set else environment.user_variable_values(target.name)
            known = None if before is None else (*choice, *before)
            give_one_of(target.name, known, environment)
        else:
            give(target, UNKNOWN, environment)


def assigned_first(statement: Node) -> frozenset[str]:
    """The user variables that a statement sets by `:=` before it reads them.

    In the order of its text, but for UPDATE, of which the servers look at WHERE first.
    """
    if isinstance(statement, Update) and statement.where is not None:
        read = {node.name for node in _variables(statement.where) if isinstance(node, UserVariable)}
        return (_assigned_first(statement) - read) | _assigned_first(statement.where)
    return _assigned_first(statement)


def _assigned_first(statement: Node) -> frozenset[str]:
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
    """Give the nodes that read or assign user variables."""
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
    """True if SELECT … INTO finds nothing on this way; called only where a handler waits for that."""
    query = query_of(node)
    if query is None or query.into is None or not environment.handles_no_row():
        return False
    select = query.body
    if isinstance(select, Select) and (not select.tables or _is_one_row(query, select)):
        return False
    return environment.host.programs.ways.choose(condition_of(node, environment)) == 1


def _is_one_row(query: Query, select: Select) -> bool:
    """True if a query has aggregates alone, and so always one row."""
    has_groups = select.group_by or select.having is not None or query.limit is not None
    return not has_groups and any(has_aggregate(item.value) for item in select.items)


def call_of(facts: StatementFacts) -> CallProcedure:
    """Return the tree of a CALL statement."""
    tree = facts.tree
    assert isinstance(tree, CallProcedure)
    return tree


def condition_of(node: Node, environment: RoutineEnvironment) -> DataCondition:
    """Return the condition for a node of a body whose value depends on data."""
    text = environment.text
    return DataCondition(text.text_of(node), environment.program, text.place(node.at))
