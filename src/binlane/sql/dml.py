"""What INSERT, REPLACE, UPDATE, DELETE, LOAD DATA, SELECT, DO and CALL read and write.

The heads are read here, token by token; queries inside go to `queries`. Of an UPDATE of several
tables whose SET names a column without its table, every table counts as written, because which one
has the column only the server knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from binlane.names import TableName
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.effects import Draft, StatementKind
from binlane.sql.queries import TableReference, query_tables
from binlane.sql.tokens import NAME_KINDS, Token, TokenKind

MODIFIERS = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "CONCURRENT", "QUICK", "IGNORE")
QUERY_WORDS = ("SELECT", "WITH", "TABLE")
CONDITION_WORDS = ("WHERE", "ORDER", "LIMIT", "RETURNING")
SEQUENCE_FUNCTIONS = ("NEXTVAL", "SETVAL", "LASTVAL")
SEQUENCE_PHRASES = ("NEXT", "PREVIOUS")
EXPRESSION_WORDS = (*QUERY_WORDS, *SEQUENCE_FUNCTIONS, *SEQUENCE_PHRASES)
"""Without any of these words, expressions read and call nothing."""

Qualifier = tuple[str | None, str]


def read_insert(cursor: Cursor, draft: Draft) -> None:
    """INSERT and REPLACE."""
    draft.kind = StatementKind[cursor.accept_any(("INSERT", "REPLACE"))]
    _skip_modifiers(cursor)
    cursor.accept("INTO")
    draft.write(draft.resolve(cursor.qualified_name()))
    if cursor.accept("PARTITION"):
        cursor.group()
    if cursor.token.text == "(" and not _is_query(cursor):
        cursor.group()
    if _is_query(cursor):
        query = cursor.until(("DUPLICATE", "RETURNING"))
        if cursor.word == "DUPLICATE":
            query = query[:-1]  # its ON
        read_query(query, draft)
    elif cursor.word not in ("VALUES", "VALUE", "SET"):
        raise cursor.stop("VALUES, SET or a query")
    read_expressions(cursor.rest(), draft)


def read_update(cursor: Cursor, draft: Draft, common: Sequence[Token] = ()) -> None:
    """UPDATE of one or several tables; `common` is the WITH clause before it."""
    draft.kind = StatementKind.UPDATE
    cursor.expect("UPDATE")
    _skip_modifiers(cursor)
    references = _read_references(cursor, ("SET",), draft, common)
    cursor.expect("SET")
    assignments = cursor.until(CONDITION_WORDS)
    for assignment in split(assignments):
        _write_targets(_column_qualifier(assignment), references, draft, assignment)
    read_expressions([*assignments, *cursor.rest()], draft, common)


def read_delete(cursor: Cursor, draft: Draft, common: Sequence[Token] = ()) -> None:
    """DELETE of one or several tables, in all three spellings."""
    draft.kind = StatementKind.DELETE
    cursor.expect("DELETE")
    _skip_modifiers(cursor)
    cursor.accept("HISTORY")
    targets = cursor.until(("FROM",))
    cursor.expect("FROM")
    start = cursor.index
    if not targets:
        head = cursor.until((*CONDITION_WORDS, "USING", "BEFORE"))
        if cursor.accept("USING"):
            targets = head
        else:
            cursor.index = start
    references = _read_references(cursor, (*CONDITION_WORDS, "BEFORE"), draft, common)
    if not targets:
        outermost = [reference for reference in references if reference.is_outermost]
        if len(outermost) != 1:
            raise cursor.stop("a single table")
        draft.write(draft.resolve(outermost[0].name))
    for target in split(targets) if targets else ():
        _write_targets(_target_name(target), references, draft, target)
    read_expressions(cursor.rest(), draft, common)


def read_select(cursor: Cursor, draft: Draft, common: Sequence[Token] = ()) -> None:
    """SELECT, TABLE, VALUES and what is made of them with UNION and parentheses."""
    draft.kind = StatementKind.SELECT
    read_query(_without_into(cursor), draft, common)


def read_with(cursor: Cursor, draft: Draft) -> None:
    """A WITH clause and the statement behind it."""
    start = cursor.index
    cursor.expect("WITH")
    cursor.accept("RECURSIVE")
    while True:
        cursor.identifier()
        if cursor.token.text == "(":
            cursor.group()
        cursor.expect("AS")
        cursor.group()
        if not cursor.accept_operator(","):
            break
    common = cursor.since(start)
    if cursor.word == "UPDATE":
        read_update(cursor, draft, common)
    elif cursor.word == "DELETE":
        read_delete(cursor, draft, common)
    elif _is_query(cursor):
        read_select(cursor, draft, common)
    else:
        raise cursor.stop("SELECT, UPDATE or DELETE")


def read_load_data(cursor: Cursor, draft: Draft) -> None:
    """LOAD DATA and LOAD XML."""
    draft.kind = StatementKind.LOAD_DATA
    cursor.until(("INTO",))
    cursor.expect("INTO", "TABLE")
    draft.write(draft.resolve(cursor.qualified_name()))
    read_expressions(cursor.rest(), draft)


def read_do(cursor: Cursor, draft: Draft) -> None:
    """DO: expressions without a result."""
    draft.kind = StatementKind.DO
    cursor.expect("DO")
    read_expressions(cursor.rest(), draft)


def read_call(cursor: Cursor, draft: Draft) -> None:
    """CALL: what the procedure does stands in no text of the caller."""
    draft.kind = StatementKind.CALL
    cursor.expect("CALL")
    draft.calls[draft.resolve(cursor.qualified_name())] = None
    read_expressions(cursor.rest(), draft)


def read_query(tokens: list[Token], draft: Draft, common: Sequence[Token] = ()) -> None:
    """Note the tables that a whole query names.

    Args:
        tokens: The query, without INTO clause.
        draft: Takes the tables as read.
        common: A WITH clause that stands before it.
    """
    query = [*common, *_note_calls(tokens, draft)]
    if any(token.word in ("FROM", "JOIN", "TABLE") for token in query):
        draft.read(*(draft.resolve(reference.name) for reference in query_tables(query)))


def read_expressions(tokens: list[Token], draft: Draft, common: Sequence[Token] = ()) -> None:
    """Note what the subqueries and calls in expressions, or in clauses made of them, name."""
    words = {token.text.upper() for token in tokens if token.kind is TokenKind.NAME}
    if words.isdisjoint(EXPRESSION_WORDS) and not any(token.text == "." for token in tokens):
        return  # most values are plain, and there may be a million of them
    cursor = Cursor(_note_calls(tokens, draft))
    while not cursor.is_at_end:
        if cursor.word in QUERY_WORDS and cursor.ahead(1).word != "QUERY":  # WITH QUERY EXPANSION
            read_query(cursor.until(()), draft, common)
        else:
            cursor.advance()


def _skip_modifiers(cursor: Cursor) -> None:
    while cursor.accept_any(MODIFIERS):
        pass


def _is_query(cursor: Cursor) -> bool:
    count = 0
    while cursor.ahead(count).text == "(":
        count += 1
    return cursor.ahead(count).word in QUERY_WORDS


def _read_references(
    cursor: Cursor, ends: Sequence[str], draft: Draft, common: Sequence[Token]
) -> list[TableReference]:
    """Read table references up to one of the words `ends`."""
    tokens = cursor.until(ends)
    if not tokens:
        raise cursor.stop("a table")
    parts = split(tokens)
    simple = [reference for part in parts if (reference := _simple_reference(part)) is not None]
    if common or len(simple) < len(parts):
        offset = tokens[0].offset
        head = [
            Token(TokenKind.NAME, "SELECT", offset, "SELECT"),
            Token(TokenKind.OPERATOR, "*", offset, "*"),
            Token(TokenKind.NAME, "FROM", offset, "FROM"),
        ]
        simple = query_tables([*common, *head, *tokens])
    draft.read(*(draft.resolve(reference.name) for reference in simple))
    return simple


_ONE = Token(TokenKind.NUMBER, "1", 0, "1")


def _simple_reference(tokens: Sequence[Token]) -> TableReference | None:
    """`table [PARTITION (…)] [FOR PORTION OF …] [[AS] alias]`; None if it is more than that."""
    cursor = Cursor(tokens)
    if cursor.token.kind not in NAME_KINDS:
        return None
    name = cursor.qualified_name()
    if cursor.accept("PARTITION"):
        cursor.group()
    if cursor.accept("FOR", "PORTION", "OF"):
        return TableReference(name, None, is_outermost=True)
    has_as = cursor.accept("AS")
    if cursor.is_at_end and not has_as:
        return TableReference(name, None, is_outermost=True)
    if cursor.token.kind not in NAME_KINDS:
        return None
    alias = cursor.identifier()
    return TableReference(name, alias, is_outermost=True) if cursor.is_at_end else None


def _write_targets(
    qualifier: Qualifier | None,
    references: Sequence[TableReference],
    draft: Draft,
    tokens: Sequence[Token],
) -> None:
    """Note the tables that a qualifier means, all if there is none."""
    targets = [
        reference
        for reference in references
        if reference.is_outermost and (qualifier is None or _is_called(reference, qualifier, draft))
    ]
    if not targets:
        raise Stopped(tokens[0] if tokens else _ONE, "a table of the statement")
    draft.write(*(draft.resolve(reference.name) for reference in targets))


def _is_called(reference: TableReference, qualifier: Qualifier, draft: Draft) -> bool:
    database, table = qualifier
    if reference.alias is not None:
        return database is None and table == reference.alias
    if database is None:
        return table == reference.name[1]
    return draft.resolve(reference.name) == TableName(database, table)


def _column_qualifier(assignment: Sequence[Token]) -> Qualifier | None:
    """The table part of the column that `column = value` sets."""
    cursor = Cursor(assignment)
    parts = [cursor.identifier()]
    while cursor.accept_operator("."):
        parts.append(cursor.identifier())
    if not (cursor.accept_operator("=") or cursor.accept_operator(":=")):
        raise cursor.stop("=")
    match parts:
        case [_]:
            return None
        case [table, _]:
            return None, table
        case [database, table, _]:
            return database, table
    raise cursor.stop("a column")


def _target_name(tokens: Sequence[Token]) -> Qualifier:
    """`table`, `database.table`, each with or without `.*`."""
    cursor = Cursor(tokens)
    parts = [cursor.identifier()]
    while cursor.accept_operator(".") and not cursor.accept_operator("*"):
        parts.append(cursor.identifier())
    cursor.expect_end()
    if len(parts) > 2:
        raise Stopped(tokens[0], "a name of at most two parts")
    return (None, parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def _without_into(cursor: Cursor) -> list[Token]:
    """The query from here on, without its INTO clause."""
    query = cursor.until(("INTO",))
    if not cursor.accept("INTO"):
        return query
    if cursor.accept_any(("OUTFILE", "DUMPFILE")):
        cursor.until(("FROM", "FOR", "LOCK"))
    else:
        while True:
            if cursor.token.kind is TokenKind.USER_VARIABLE:
                cursor.advance()
            else:
                cursor.qualified_name()
            if not cursor.accept_operator(","):
                break
    return query + cursor.rest()


def _note_calls(tokens: Sequence[Token], draft: Draft) -> list[Token]:
    """Note sequences used and functions called with their database.

    Returns:
        The tokens, with a number in place of NEXT VALUE FOR, which sqlglot does not know.
    """
    cursor = Cursor(tokens)
    kept: list[Token] = []
    while not cursor.is_at_end:
        if cursor.word in SEQUENCE_PHRASES and cursor.ahead(2).word == "FOR":
            writes = cursor.accept_any(SEQUENCE_PHRASES) == "NEXT"
            cursor.expect("VALUE", "FOR")
            _note_sequence(cursor.qualified_name(), draft, writes=writes)
            kept.append(_ONE)
            continue
        if cursor.word in SEQUENCE_FUNCTIONS and cursor.ahead(1).text == "(":
            argument = Cursor([cursor.ahead(count) for count in range(2, 5)])
            _note_sequence(argument.qualified_name(), draft, writes=cursor.word != "LASTVAL")
        elif _is_qualified_call(cursor) and (not kept or kept[-1].text != "."):
            name = (cursor.token.value, cursor.ahead(2).value)
            draft.calls[draft.resolve(name)] = None
        kept.append(cursor.advance())
    return kept


def _note_sequence(name: Qualifier, draft: Draft, *, writes: bool) -> None:
    sequence = draft.resolve(name)
    if writes:
        draft.write(sequence)
    else:
        draft.read(sequence)


def _is_qualified_call(cursor: Cursor) -> bool:
    return (
        cursor.ahead(3).text == "("
        and cursor.ahead(1).text == "."
        and cursor.token.kind in NAME_KINDS
        and cursor.ahead(2).kind in NAME_KINDS
    )
