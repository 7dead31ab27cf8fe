"""Values and types of expressions: the one evaluator, over the nodes of `tree.expressions`.

Nothing here knows sessions or reads text by itself: names mean what an `Environment` says, literals
what a `StatementText` says (`StatementFacts` is one; `OwnText(sql, dialect)` for a tree that was
made of this very text). Import from the modules; what they offer:

Values (`values`): `Value` = None | int | Decimal | float | Text | Temporal | UNKNOWN;
`constant(value, is_mariadb=)` as NAME_CONST and logged calls have it, `parameter(…)`, `plain_text`,
`number_text`, `escaped`; `truth`, `as_number`, `equal`, `compared`, `OPERATORS`.

Types that values are stored as (`values`):
    StoredType.of(data_type: DataType, collation=, default_collation=).store(value) -> Value

One expression (`evaluator`):
    evaluate(node, text, environment) -> Value            assigns and calls as the servers do
    holds(node, text, environment) -> bool | None         a condition; None: it hangs on data

Dynamic SQL (`evaluator`):
    possible_values(node, text, environment) -> tuple[Value, …] | None

Statements (`statements`):
    where_holds(update_or_delete, text, environment) -> bool | None
    is_proven_empty(statement, text, environment) -> bool
    expressions_at(insert_or_query, position) -> Iterator[Expression | None]
    leaves_to_server(expression, text, environment, zero_is_chosen=) -> bool
    variable_places(statement, names) -> list[VariablePlace]
    with_constants(statement, text, names, value_of, flavor) -> str
    user_variables_read(statement, text) -> list[str]; user_variables_assigned(node)

Types (`operator_types`, `query_types`; `Untyped` where they are not known):
    Scope(text=, objects=, flavor=, database=, connection=, environment=)
    expression_type(node, scope) -> Type
    query_columns(query, scope) -> tuple[TableColumn, …]   those of CREATE TABLE … SELECT
"""
