"""The grammar of the statements that binlane itself answers.

Seed 000's CREATE, ALTER and DROP BINLOG, and the servers' own statements on binary logs, which may
name one of several binlogs here. What they mean stands in `statements`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from binlane.names import TableName
from binlane.statements.scope.directives import Action, Directive
from binlane.statements.scope.scope import ScopeList, ScopeObject
from binlane.statements.scope.statements import (
    AcknowledgeIncidents,
    AlterBinlog,
    BinlogStatement,
    CancelRows,
    CheckBinlog,
    CompactBinlog,
    CreateBinlog,
    DefaultFormat,
    DropBinlog,
    FlushBinaryLogs,
    GrantRead,
    PurgeBinaryLogs,
    RevokeRead,
    ShowBinaryLogs,
    ShowBinlogEvents,
    ShowBinlogs,
    ShowBinlogStatus,
    ShowChecks,
    ShowIncidents,
    ShowReadGrants,
    ShowReplicas,
    StartBinlog,
    StopBinlog,
)
from binlane.statements.sql.parser import Stopped, cursor_over
from binlane.statements.sql.parser.accounts import read_account
from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.servers import Dialect, LoggingMode, RowImage
from binlane.statements.sql.tokens import SqlSyntaxError, TokenKind
from binlane.statements.sql.tree.account_statements import NamedAccount

CREATE_GRAMMAR: Final = (
    "CREATE BINLOG [IF NOT EXISTS] 'name' [LOG(list) | LOG ALL] [, IGNORE(list) | IGNORE ALL] "
    "[, FORMAT='ROW'|'STATEMENT'|'MIXED'|'default'] "
    "[, ROW_IMAGE='FULL'|'MINIMAL'|'NOBLOB'|'FULL_NODUP'|'default'] [, COMPRESS='ON'|'OFF'] "
    "[, FOLLOW CASCADES] [WITH ROWS], where list is `database` or "
    "`database`.`table`, separated by commas"
)
ALTER_GRAMMAR: Final = (
    "ALTER BINLOG [IF EXISTS] 'name' directive [, directive …], where a directive is LOG(list), LOG ALL, "
    "IGNORE(list), IGNORE ALL, ADD LOG(list), ADD IGNORE(list), DROP LOG(list), "
    "DROP IGNORE(list), FORMAT='…', ROW_IMAGE='…', COMPRESS='…', FOLLOW CASCADES or NOFOLLOW CASCADES; "
    "ALTER BINLOG 'name' ADD LOG(list) WITH ROWS; ALTER BINLOG 'name' COMPACT; "
    "ALTER BINLOG 'name' WITHOUT ROWS"
)
_OPTIONS: Final = "FORMAT, ROW_IMAGE, COMPRESS or FOLLOW CASCADES"
REVOKE_GRAMMAR: Final = "REVOKE [IF EXISTS] READ ON BINLOG 'name' [, …] FROM account [, …]"
FIRST_WORDS: Final = frozenset(
    (
        *("CREATE", "ALTER", "DROP", "START", "STOP", "SHOW", "FLUSH", "PURGE", "SET"),
        *("GRANT", "REVOKE", "ACKNOWLEDGE", "CHECK"),
    )
)


def parse_binlog_statement(text: str, *, ansi_quotes: bool = False) -> BinlogStatement | None:
    """Read a statement that binlane answers itself.

    Args:
        text: SQL of a client; comments, a trailing `;` and `SET STATEMENT … FOR` do not matter.
        ansi_quotes: True if sql_mode has ANSI_QUOTES.

    Returns:
        The statement, or None if the text is no statement of binlane.

    Raises:
        SqlSyntaxError: If the text begins like a statement of binlane and goes on otherwise.
    """
    dialect = Dialect(ansi_quotes=ansi_quotes)
    try:
        cursor = cursor_over(text, dialect)
    except Stopped:
        return None  # longer than any of ours
    except SqlSyntaxError as error:
        if _begins_like_ours(text[: error.offset], dialect):
            raise
        return None
    grammar = _grammar(cursor) if cursor.word in FIRST_WORDS else None
    if grammar is None:
        return None
    try:
        statement = grammar.reader(cursor)
        cursor.accept_operator(";")
        cursor.expect_end()
    except Stopped as stopped:
        raise SqlSyntaxError(
            text, stopped.token.offset, stopped.expected, hint=grammar.text
        ) from None
    return statement


def _begins_like_ours(text: str, dialect: Dialect) -> bool:
    """True if the text before an unended quote or comment begins a statement of binlane."""
    try:
        return _grammar(cursor_over(text, dialect)) is not None
    except (Stopped, SqlSyntaxError):
        return False


@dataclass(frozen=True, slots=True)
class BinlogGrammar:
    """Grammar of one kind of statement.

    Attributes:
        beginnings: Words with which the statement begins, in all spellings.
        reader: Reads the text behind the beginning.
        text: The grammar as error messages show it.
    """

    beginnings: tuple[str, ...]
    reader: Callable[[Cursor], BinlogStatement]
    text: str


def _skip_set_statement(cursor: Cursor) -> None:
    """Go behind `SET STATEMENT variable = value, … FOR`."""
    while cursor.accept("SET", "STATEMENT"):
        cursor.until(("FOR",))
        cursor.expect("FOR")


def _grammar(cursor: Cursor) -> BinlogGrammar | None:
    """Find the grammar that the text begins like, and go behind the words it is known by."""
    try:
        _skip_set_statement(cursor)
    except Stopped:
        return None
    for grammar in GRAMMARS:
        for beginning in grammar.beginnings:
            if cursor.accept(*beginning.split()):
                return grammar
    return None


def _read_create(cursor: Cursor) -> CreateBinlog:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = _binlog_name(cursor)
    clauses = _clauses(cursor, _read_list)
    return CreateBinlog(
        name,
        clauses.directives,
        clauses.logging_mode,
        if_not_exists,
        clauses.row_image,
        clauses.is_compressed,
        clauses.follows_cascades,
        clauses.with_rows,
    )


def _read_alter(cursor: Cursor) -> AlterBinlog | CompactBinlog | CancelRows:
    if_exists = cursor.accept("IF", "EXISTS")
    name = _binlog_name(cursor)
    if cursor.accept("COMPACT"):
        return CompactBinlog(name, if_exists)
    if cursor.accept("WITHOUT", "ROWS"):
        return CancelRows(name)
    clauses = _clauses(cursor, _read_directive)
    if clauses._replace(with_rows=False) == _Clauses():
        raise cursor.stop(f"LOG, IGNORE, ADD, DROP, COMPACT, {_OPTIONS}")
    only_adds = clauses._replace(directives=(), with_rows=False) == _Clauses() and all(
        (one.action, one.which) == (Action.ADD, ScopeList.LOG) for one in clauses.directives
    )
    if clauses.with_rows and not only_adds:
        raise cursor.stop("ADD LOG(list) and nothing else where WITH ROWS stands")
    return AlterBinlog(
        name,
        clauses.directives,
        clauses.logging_mode,
        if_exists,
        clauses.row_image,
        clauses.is_compressed,
        clauses.follows_cascades,
        clauses.with_rows,
    )


class _Clauses(NamedTuple):
    """Clauses of CREATE and ALTER BINLOG behind the name; None for a clause that is absent."""

    directives: tuple[Directive, ...] = ()
    logging_mode: LoggingMode | DefaultFormat | None = None
    row_image: RowImage | None = None
    is_compressed: bool | None = None
    follows_cascades: bool | None = None
    with_rows: bool = False


def _clauses(cursor: Cursor, read: Callable[[Cursor], Directive]) -> _Clauses:
    """Read scope clauses and options in any order, with or without commas between them."""
    directives: list[Directive] = []
    found = _Clauses()
    has_comma = cursor.accept_operator(",")
    while has_comma or cursor.token.kind is TokenKind.NAME:
        if cursor.accept("FORMAT"):
            if found.logging_mode is not None:
                raise cursor.stop("FORMAT only once")
            found = found._replace(logging_mode=_logging_mode(cursor))
        elif cursor.accept("ROW_IMAGE"):
            if found.row_image is not None:
                raise cursor.stop("ROW_IMAGE only once")
            found = found._replace(row_image=_row_image(cursor))
        elif cursor.accept("COMPRESS"):
            if found.is_compressed is not None:
                raise cursor.stop("COMPRESS only once")
            word = _option(cursor, ("ON", "OFF"), "'ON', 'OFF' or 'default'")
            found = found._replace(is_compressed=word == "ON")
        elif cursor.word in ("FOLLOW", "NOFOLLOW"):
            found = found._replace(follows_cascades=_follows(cursor, found))
        elif cursor.word == "WITH":
            cursor.expect("WITH")
            cursor.expect("ROWS")
            found = found._replace(with_rows=True)
        else:
            directives.append(read(cursor))
        has_comma = cursor.accept_operator(",")
    return found._replace(directives=tuple(directives))


def _follows(cursor: Cursor, found: _Clauses) -> bool:
    """Read FOLLOW CASCADES or NOFOLLOW CASCADES."""
    if found.follows_cascades is not None:
        raise cursor.stop("FOLLOW or NOFOLLOW only once")
    word = cursor.accept_any(("FOLLOW", "NOFOLLOW"))
    cursor.expect("CASCADES")
    return word == "FOLLOW"


def _read_directive(cursor: Cursor) -> Directive:
    verb = cursor.accept_any(("ADD", "DROP"))
    if not verb:
        return _read_list(cursor)
    if cursor.word in ("LOG", "IGNORE") and cursor.ahead(1).word == "ALL":
        cursor.advance()
        raise cursor.stop(f"a list in parentheses: {verb} changes lists")
    return replace(_read_list(cursor), action=Action(verb))


def _read_list(cursor: Cursor) -> Directive:
    word = cursor.accept_any(("LOG", "IGNORE"))
    if not word:
        raise cursor.stop(f"LOG, IGNORE, {_OPTIONS}")
    which = ScopeList(word)
    if cursor.accept("ALL"):
        return Directive(Action.SET, which, None)
    cursor.expect_operator("(")
    objects = [_scope_object(cursor)]
    while cursor.accept_operator(","):
        objects.append(_scope_object(cursor))
    cursor.expect_operator(")")
    return Directive(Action.SET, which, tuple(objects))


def _scope_object(cursor: Cursor) -> ScopeObject:
    first = cursor.any_name()
    if not cursor.accept_operator("."):
        return first
    second = cursor.any_name()
    if cursor.word == ".":
        raise cursor.stop("a name of at most two parts")
    return TableName(first, second)


def _logging_mode(cursor: Cursor) -> LoggingMode | DefaultFormat:
    word = _option(cursor, LoggingMode.__members__, "'ROW', 'STATEMENT', 'MIXED' or 'default'")
    return DefaultFormat.DEFAULT if word == "DEFAULT" else LoggingMode[word]


def _row_image(cursor: Cursor) -> RowImage:
    expected = "'FULL', 'MINIMAL', 'NOBLOB', 'FULL_NODUP' or 'default'"
    word = _option(cursor, RowImage.__members__, expected)
    return RowImage.FULL if word == "DEFAULT" else RowImage[word]


def _option(cursor: Cursor, words: Collection[str], expected: str) -> str:
    """Read one of some words, or DEFAULT, with or without quotes."""
    cursor.accept_operator("=")
    token = cursor.token
    word = token.value.upper()
    is_word = token.kind in (TokenKind.NAME, TokenKind.STRING, TokenKind.QUOTED_NAME)
    if not is_word or word not in (*words, "DEFAULT"):
        raise cursor.stop(expected)
    cursor.advance()
    return word


def _binlog_name(cursor: Cursor) -> str:
    if cursor.token.kind is TokenKind.STRING:
        return cursor.advance().value
    if cursor.is_at_end or cursor.token.kind is TokenKind.OPERATOR:
        raise cursor.stop("the name of a binlog")
    return cursor.any_name()


def _name_at_end(cursor: Cursor) -> str | None:
    """The name of a binlog where one may stand."""
    if cursor.is_at_end or cursor.token.text == ";":
        return None
    return _binlog_name(cursor)


def _string(cursor: Cursor, what: str) -> str:
    if cursor.token.kind is not TokenKind.STRING:
        raise cursor.stop(what)
    return cursor.advance().value


def _expression(cursor: Cursor) -> str:
    """Read an expression up to the end of the statement; gives its text, without comments."""
    text, end = "", cursor.token.offset
    while not cursor.is_at_end and cursor.token.text != ";":
        token = cursor.advance()
        text += token.text if token.offset == end else f" {token.text}"
        end = token.end
    if not text:
        raise cursor.stop("a time")
    return text


def _number(cursor: Cursor) -> int:
    text = cursor.token.text
    if cursor.token.kind is not TokenKind.NUMBER or not text.isdecimal():
        raise cursor.stop("a number")
    cursor.advance()
    return int(text)


def _read_drop(cursor: Cursor) -> DropBinlog:
    if_exists = cursor.accept("IF", "EXISTS")
    return DropBinlog(_binlog_name(cursor), if_exists)


def _read_start(cursor: Cursor) -> StartBinlog:
    name = _binlog_name(cursor)
    return StartBinlog(name, _string(cursor, "a GTID position") if cursor.accept("FROM") else None)


def _read_stop(cursor: Cursor) -> StopBinlog:
    return StopBinlog(_binlog_name(cursor))


def _read_show_binlogs(_cursor: Cursor) -> ShowBinlogs:
    return ShowBinlogs()


def _read_show_status(cursor: Cursor) -> ShowBinlogStatus:
    return ShowBinlogStatus(_name_at_end(cursor))


def _read_show_logs(cursor: Cursor) -> ShowBinaryLogs:
    return ShowBinaryLogs(_binlog_name(cursor) if cursor.accept("FOR") else None)


def _read_show_events(cursor: Cursor) -> ShowBinlogEvents:
    file = _string(cursor, "the name of a binlog file") if cursor.accept("IN") else None
    position = _number(cursor) if cursor.accept("FROM") else None
    if not cursor.accept("LIMIT"):
        return ShowBinlogEvents(file, position)
    first = _number(cursor)
    if cursor.accept_operator(","):
        return ShowBinlogEvents(file, position, first, _number(cursor))
    if cursor.accept("OFFSET"):
        return ShowBinlogEvents(file, position, _number(cursor), first)
    return ShowBinlogEvents(file, position, 0, first)


def _read_show_incidents(cursor: Cursor) -> ShowIncidents:
    return ShowIncidents(_binlog_name(cursor) if cursor.accept("FOR") else None)


def _read_show_checks(cursor: Cursor) -> ShowChecks:
    return ShowChecks(_binlog_name(cursor) if cursor.accept("FOR") else None)


def _read_check(cursor: Cursor) -> CheckBinlog:
    return CheckBinlog(_name_at_end(cursor))


def _read_acknowledge(cursor: Cursor) -> AcknowledgeIncidents:
    cursor.expect("FOR")
    name = _binlog_name(cursor)
    last = _string(cursor, "a GTID or 'file:position'") if cursor.accept("TO") else None
    return AcknowledgeIncidents(name, last)


def _read_flush(cursor: Cursor) -> FlushBinaryLogs:
    return FlushBinaryLogs(_name_at_end(cursor))


def _read_purge(cursor: Cursor) -> PurgeBinaryLogs:
    name = _binlog_name(cursor) if cursor.accept("FOR") else None
    if cursor.accept("TO"):
        return PurgeBinaryLogs(name, to_file=_string(cursor, "the name of a binlog file"))
    if cursor.accept("BEFORE"):
        return PurgeBinaryLogs(name, before=_expression(cursor))
    raise cursor.stop("TO or BEFORE")


def _read_show_replicas(_cursor: Cursor) -> ShowReplicas:
    return ShowReplicas()


def _read_grant(cursor: Cursor) -> GrantRead:
    names = _binlog_names(cursor)
    cursor.expect("TO")
    return GrantRead(names, _accounts(cursor))


def _read_revoke(cursor: Cursor) -> RevokeRead:
    names = _binlog_names(cursor)
    cursor.expect("FROM")
    return RevokeRead(names, _accounts(cursor))


def _read_revoke_if_exists(cursor: Cursor) -> RevokeRead:
    return replace(_read_revoke(cursor), if_exists=True)


def _binlog_names(cursor: Cursor) -> tuple[str, ...]:
    names = [_binlog_name(cursor)]
    while cursor.accept_operator(","):
        names.append(_binlog_name(cursor))
    return tuple(dict.fromkeys(names))


def _accounts(cursor: Cursor) -> tuple[NamedAccount, ...]:
    accounts = [read_account(cursor)]
    while cursor.accept_operator(","):
        accounts.append(read_account(cursor))
    return tuple(accounts)


def _read_show_grants(cursor: Cursor) -> ShowReadGrants:
    name = None if cursor.word == "FOR" else _name_at_end(cursor)
    return ShowReadGrants(name, read_account(cursor) if cursor.accept("FOR") else None)


GRAMMARS: Final = (
    BinlogGrammar(("CREATE BINLOG",), _read_create, CREATE_GRAMMAR),
    BinlogGrammar(("ALTER BINLOG",), _read_alter, ALTER_GRAMMAR),
    BinlogGrammar(("DROP BINLOG",), _read_drop, "DROP BINLOG [IF EXISTS] 'name'"),
    BinlogGrammar(("START BINLOG",), _read_start, "START BINLOG 'name' [FROM 'gtid position']"),
    BinlogGrammar(("STOP BINLOG",), _read_stop, "STOP BINLOG 'name'"),
    BinlogGrammar(("SHOW BINLOGS",), _read_show_binlogs, "SHOW BINLOGS"),
    BinlogGrammar(
        ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS", "SHOW BINLOG STATUS"),
        _read_show_status,
        "SHOW MASTER STATUS ['name'], also SHOW BINARY LOG STATUS and SHOW BINLOG STATUS",
    ),
    BinlogGrammar(
        ("SHOW BINARY LOGS", "SHOW MASTER LOGS"),
        _read_show_logs,
        "SHOW BINARY LOGS [FOR 'name']",
    ),
    BinlogGrammar(
        ("SHOW BINLOG EVENTS",),
        _read_show_events,
        "SHOW BINLOG EVENTS [IN 'file'] [FROM position] [LIMIT [offset,] count]",
    ),
    BinlogGrammar(
        ("SHOW BINLOG INCIDENTS",),
        _read_show_incidents,
        "SHOW BINLOG INCIDENTS [FOR 'name']",
    ),
    BinlogGrammar(
        ("SHOW BINLOG CHECKS",),
        _read_show_checks,
        "SHOW BINLOG CHECKS [FOR 'name']",
    ),
    BinlogGrammar(("CHECK BINLOG",), _read_check, "CHECK BINLOG ['name']"),
    BinlogGrammar(
        ("ACKNOWLEDGE BINLOG INCIDENTS",),
        _read_acknowledge,
        "ACKNOWLEDGE BINLOG INCIDENTS FOR 'name' [TO 'gtid or file:position']",
    ),
    BinlogGrammar(
        (
            "FLUSH BINARY LOGS",
            "FLUSH LOCAL BINARY LOGS",
            "FLUSH NO_WRITE_TO_BINLOG BINARY LOGS",
        ),
        _read_flush,
        "FLUSH BINARY LOGS ['name']",
    ),
    BinlogGrammar(
        ("PURGE BINARY LOGS", "PURGE MASTER LOGS"),
        _read_purge,
        "PURGE BINARY LOGS [FOR 'name'] {TO 'file' | BEFORE time}, where time is an expression",
    ),
    BinlogGrammar(
        ("GRANT READ ON BINLOG",),
        _read_grant,
        "GRANT READ ON BINLOG 'name' [, …] TO account [, …]",
    ),
    BinlogGrammar(("REVOKE READ ON BINLOG",), _read_revoke, REVOKE_GRAMMAR),
    BinlogGrammar(("REVOKE IF EXISTS READ ON BINLOG",), _read_revoke_if_exists, REVOKE_GRAMMAR),
    BinlogGrammar(
        ("SHOW GRANTS ON BINLOG",),
        _read_show_grants,
        "SHOW GRANTS ON BINLOG ['name'] [FOR account]",
    ),
    BinlogGrammar(
        ("SHOW SLAVE HOSTS", "SHOW REPLICA HOSTS", "SHOW REPLICAS"),
        _read_show_replicas,
        "SHOW SLAVE HOSTS, SHOW REPLICA HOSTS, SHOW REPLICAS",
    ),
)
