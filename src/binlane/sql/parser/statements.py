"""Statements of sessions: SET, transactions, prepared statements, locks, diagnostics, administration.

What follows the first words of a command that no log holds (SHOW, KILL, …) is gone behind.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from binlane.sql.parser.cursor import Cursor
from binlane.sql.parser.expressions import read_expression
from binlane.sql.parser.literals import read_object_name
from binlane.sql.tokens import TokenKind
from binlane.sql.tree.expressions import (
    Expression,
    Literal,
    LiteralKind,
    Name,
    Node,
    ObjectName,
    TableUse,
    UserVariable,
)
from binlane.sql.tree.statements import (
    Administration,
    BinlogStatement,
    Diagnostics,
    Lock,
    Prepare,
    Set,
    SetItem,
    SetStatement,
    Transaction,
)

StatementReader = Callable[[Cursor], Node]
"""Reads one statement, of any kind that may stand here."""

# SET ------------------------------------------------------------------------------------------

_SCOPES: Final = {
    "GLOBAL": "global",
    "SESSION": "session",
    "LOCAL": "session",
    "PERSIST": "persist",
    "PERSIST_ONLY": "persist_only",
}
_ISOLATION_LEVELS: Final[Sequence[str]] = (
    "READ UNCOMMITTED",
    "READ COMMITTED",
    "REPEATABLE READ",
    "SERIALIZABLE",
)
_ACCESS_MODES: Final[Sequence[str]] = ("READ ONLY", "READ WRITE")
_MARIADB_UPKEEP: Final = ("PERSISTENT", "WAIT", "NOWAIT")
_MYSQL_UPKEEP: Final = ("UPDATE", "DROP")
"""What only one of the servers takes behind the tables of ANALYZE, OPTIMIZE, REPAIR and CHECK."""
_VALUE_WORDS: Final = ("ON", "ALL", "BINARY", "ROW", "SYSTEM")
"""Words that are values although an expression may not consist of them."""
_ASSIGNS: Final = ("=", ":=")
_VALUE_ENDS: Final = ("", ",", ";", "FOR")


def read_set(cursor: Cursor) -> Set:
    """SET of variables, names and transactions, at SET."""
    start = cursor.start
    cursor.expect("SET")
    items = _items(cursor)
    return Set(start, cursor.end, items)


def read_set_statement(cursor: Cursor, statement: StatementReader) -> SetStatement:
    """SET STATEMENT … FOR a statement (MariaDB)."""
    start = cursor.start
    cursor.expect("SET", "STATEMENT")
    items = _items(cursor)
    cursor.expect("FOR")
    inner = statement(cursor)
    return SetStatement(start, inner.end, items, inner)


def _is_scope(cursor: Cursor) -> bool:
    word = cursor.word
    return word in _SCOPES and (cursor.dialect.may_be_mysql or not word.startswith("PERSIST"))


def _items(cursor: Cursor) -> tuple[SetItem, ...]:
    """Assignments with commas between them; a scope holds for what follows it too."""
    scope = ""
    found: list[SetItem] = []
    while True:
        start = cursor.start
        if _is_scope(cursor) and cursor.word_ahead(1) not in (*_ASSIGNS, "."):
            scope = _SCOPES[cursor.advance().word]
        word, following = cursor.word, cursor.word_ahead(1)
        if word == "TRANSACTION" and following in ("ISOLATION", "READ"):
            cursor.advance()
            found += _transaction_items(cursor, scope, start)
        elif word == "NAMES" and following not in _ASSIGNS:
            cursor.advance()
            found.append(_character_set(cursor, "names", start))
        elif word in ("CHARACTER", "CHAR") and following == "SET":
            cursor.expect(word, "SET")
            found.append(_character_set(cursor, "character set", start))
        elif word == "CHARSET" and following not in _ASSIGNS:
            cursor.advance()
            found.append(_character_set(cursor, "character set", start))
        else:
            found.append(_item(cursor, scope, start))
        if not cursor.accept_operator(","):
            return tuple(found)


def _item(cursor: Cursor, scope: str, start: int) -> SetItem:
    token = cursor.token
    target: Name | None = None
    is_system = bool(scope)
    if token.kind is TokenKind.USER_VARIABLE:
        cursor.advance()
        name, scope, is_system = "@" + user_variable_name(token.text), "", False
    elif token.kind is TokenKind.SYSTEM_VARIABLE:
        cursor.advance()
        scope, name = system_variable_name(token.text)
        is_system = True
    else:
        first = cursor.identifier()
        name = first.lower()
        if cursor.accept_operator("."):
            second = cursor.identifier()
            name = f"{name}.{second.lower()}"
            target = Name(token.offset, cursor.end, (first, second))
    if not cursor.accept_operator("=") and not cursor.accept_operator(":="):
        raise cursor.stop("=")
    is_alone = cursor.word_ahead(1) in _VALUE_ENDS and (
        cursor.word_ahead(1) or cursor.ahead(1).kind is TokenKind.END
    )
    value_at = cursor.token
    value: Expression | None
    if cursor.word == "DEFAULT" and is_alone and name[:1] != "@":
        cursor.advance()
        value = None
    elif cursor.word in _VALUE_WORDS and is_alone:
        cursor.advance()
        value = Name(value_at.offset, value_at.end, (value_at.text,))
    else:
        value = read_expression(cursor)
    return SetItem(
        start, cursor.end, name, scope=scope, value=value, is_system=is_system, target=target
    )


def _transaction_items(cursor: Cursor, scope: str, start: int) -> list[SetItem]:
    """ISOLATION LEVEL and access mode of SET TRANSACTION, one item for each."""
    found: list[SetItem] = []
    while True:
        name, known = "transaction access mode", _ACCESS_MODES
        if cursor.accept("ISOLATION"):
            cursor.expect("LEVEL")
            name, known = "transaction isolation level", _ISOLATION_LEVELS
        words = next((words for words in known if cursor.accept(*words.split())), None)
        if words is None or name in [item.name for item in found]:
            raise cursor.stop(" or ".join(known))
        found.append(SetItem(start, cursor.end, name, scope=scope, words=words))
        if not cursor.accept_operator(","):
            return found
        start = cursor.start


def _character_set(cursor: Cursor, name: str, start: int) -> SetItem:
    """The character set of SET NAMES and SET CHARACTER SET, with its collation."""
    if name == "names":
        cursor.accept_operator("=")
    words = cursor.accept_any(("BINARY", "DEFAULT")) or _word_or_string(cursor)
    if name == "names" and words != "DEFAULT" and cursor.accept("COLLATE"):
        collation = cursor.accept_any(("BINARY", "DEFAULT")) or _word_or_string(cursor)
        words += f" COLLATE {collation}"
    return SetItem(start, cursor.end, name, words=words)


def _word_or_string(cursor: Cursor) -> str:
    if cursor.kind is TokenKind.STRING:
        return cursor.advance().value
    return cursor.identifier()


def user_variable_name(text: str) -> str:
    """The name of a user variable, without `@` and quotes, in lower case."""
    name = text[1:]
    if name[:1] in ("`", "'", '"'):
        name = name[1:-1].replace(name[0] * 2, name[0])
    return name.lower()


def system_variable_name(text: str) -> tuple[str, str]:
    """Scope and name of `@@name`, in lower case; a key cache or component before it stays."""
    name = text[2:].replace("`", "").lower()
    scope, dot, rest = name.partition(".")
    known = _SCOPES.get(scope.upper()) if dot else None
    return (known, rest) if known is not None else ("", name)


def _skip_rest(cursor: Cursor) -> None:
    """Go behind what is not looked at, up to the delimiter."""
    while cursor.word != ";" and not cursor.is_at_end:
        cursor.advance()


# Transactions ---------------------------------------------------------------------------------

_REPLICATION_WORDS: Final = ("SLAVE", "REPLICA", "ALL", "GROUP_REPLICATION", "SLAVES", "REPLICAS")
_START_OPTIONS: Final = ("WITH CONSISTENT SNAPSHOT", "READ ONLY", "READ WRITE")
_XA_WORDS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "START": ("JOIN", "RESUME"),
        "END": ("SUSPEND FOR MIGRATE", "SUSPEND"),
        "PREPARE": (),
        "COMMIT": ("ONE PHASE",),
        "ROLLBACK": (),
    }
)


def read_begin(cursor: Cursor) -> Node:
    """BEGIN [WORK]."""
    start = cursor.start
    cursor.expect("BEGIN")
    cursor.accept("WORK")
    return Transaction(start, cursor.end, "BEGIN")


def read_start(cursor: Cursor) -> Node:
    """START TRANSACTION; START of replication."""
    start = cursor.start
    cursor.expect("START")
    if cursor.word in _REPLICATION_WORDS:
        verb = f"START {cursor.word}"
        _skip_rest(cursor)
        return Administration(start, cursor.end, verb)
    cursor.expect("TRANSACTION")
    options: set[str] = set()
    while option := _option(cursor, _START_OPTIONS):
        options.add(option)
        if not cursor.accept_operator(","):
            break
    else:
        if options:
            raise cursor.stop(" or ".join(_START_OPTIONS))
    if options.issuperset(("READ ONLY", "READ WRITE")):
        raise cursor.stop("one access mode")
    return Transaction(start, cursor.end, "START TRANSACTION", options=frozenset(options))


def _option(cursor: Cursor, options: Sequence[str]) -> str:
    return next((option for option in options if cursor.accept(*option.split())), "")


def read_commit(cursor: Cursor) -> Node:
    """COMMIT."""
    start = cursor.start
    cursor.expect("COMMIT")
    cursor.accept("WORK")
    options = _completion(cursor)
    return Transaction(start, cursor.end, "COMMIT", options=options)


def read_rollback(cursor: Cursor) -> Node:
    """ROLLBACK, whole or to a savepoint."""
    start = cursor.start
    cursor.expect("ROLLBACK")
    cursor.accept("WORK")
    if cursor.accept("TO"):
        cursor.accept("SAVEPOINT")
        name = cursor.identifier()
        return Transaction(start, cursor.end, "ROLLBACK TO", name)
    options = _completion(cursor)
    return Transaction(start, cursor.end, "ROLLBACK", options=options)


def _completion(cursor: Cursor) -> frozenset[str]:
    options: set[str] = set()
    if cursor.accept("AND"):
        options.add("AND NO CHAIN" if cursor.accept("NO") else "AND CHAIN")
        cursor.expect("CHAIN")
    if cursor.accept("NO"):
        cursor.expect("RELEASE")
        options.add("NO RELEASE")
    elif cursor.word == "RELEASE":
        if "AND CHAIN" in options:
            raise cursor.stop("no RELEASE")
        cursor.advance()
        options.add("RELEASE")
    return frozenset(options)


def read_savepoint(cursor: Cursor) -> Node:
    """SAVEPOINT and RELEASE SAVEPOINT."""
    start = cursor.start
    verb = "RELEASE SAVEPOINT" if cursor.accept("RELEASE") else "SAVEPOINT"
    cursor.expect("SAVEPOINT")
    name = cursor.identifier()
    return Transaction(start, cursor.end, verb, name)


def read_xa(cursor: Cursor) -> Node:
    """XA START, END, PREPARE, COMMIT, ROLLBACK, RECOVER."""
    start = cursor.start
    cursor.expect("XA")
    word = cursor.accept_any(("BEGIN", "RECOVER", *_XA_WORDS))
    if not word:
        raise cursor.stop("what XA is to do")
    if word == "RECOVER":
        _skip_rest(cursor)
        return Transaction(start, cursor.end, "XA RECOVER")
    word = "START" if word == "BEGIN" else word
    xid = _xid(cursor)
    option = _option(cursor, _XA_WORDS[word])
    options = frozenset((option,)) if option else frozenset()
    return Transaction(start, cursor.end, f"XA {word}", xid=xid, options=options)


def _xid(cursor: Cursor) -> tuple[Literal, ...]:
    """The global id, and a branch id and format if they follow."""
    parts = [_literal(cursor, is_number=False)]
    if cursor.accept_operator(","):
        parts.append(_literal(cursor, is_number=False))
        if cursor.accept_operator(","):
            parts.append(_literal(cursor, is_number=True))
    return tuple(parts)


def _literal(cursor: Cursor, *, is_number: bool) -> Literal:
    """A string, hexadecimal or bits, or a number."""
    token = cursor.token
    kind = LiteralKind.STRING
    if token.kind is TokenKind.NUMBER:
        kind = _number_kind(token.text)
    elif is_number or token.kind is not TokenKind.STRING:
        raise cursor.stop("a number" if is_number else "a string")
    if kind is LiteralKind.NUMBER and not is_number:
        raise cursor.stop("a string")
    cursor.advance()
    return Literal(token.offset, token.end, kind)


def _number_kind(text: str) -> LiteralKind:
    match text[:2].lower():
        case "0x" | "x'":
            return LiteralKind.HEX
        case "0b" | "b'":
            return LiteralKind.BIT
    return LiteralKind.NUMBER


# Prepared statements --------------------------------------------------------------------------


def read_prepare(cursor: Cursor) -> Node:
    """PREPARE name FROM a string or variable; of MariaDB any expression."""
    start = cursor.start
    cursor.expect("PREPARE")
    name = cursor.identifier()
    cursor.expect("FROM")
    source = _prepared(cursor)
    return Prepare(start, cursor.end, "PREPARE", name, source=source)


def _prepared(cursor: Cursor) -> Expression:
    if not cursor.dialect.has_mariadb(10, 2) and cursor.kind not in (
        TokenKind.STRING,
        TokenKind.USER_VARIABLE,
    ):
        raise cursor.stop("a string or a variable")
    return read_expression(cursor)


def read_execute(cursor: Cursor) -> Node:
    """EXECUTE, and EXECUTE IMMEDIATE of MariaDB."""
    start = cursor.start
    cursor.expect("EXECUTE")
    verb, name = "EXECUTE", ""
    source: Expression | None = None
    if (
        cursor.word == "IMMEDIATE"
        and cursor.dialect.has_mariadb(10, 2)
        and cursor.ahead(1).kind is not TokenKind.END
        and cursor.word_ahead(1) not in {"USING", ";"}
    ):
        cursor.advance()
        verb, source = "EXECUTE IMMEDIATE", _prepared(cursor)
    else:
        name = cursor.identifier()
    using: list[Expression] = []
    if cursor.accept("USING"):
        using.append(_parameter(cursor))
        while cursor.accept_operator(","):
            using.append(_parameter(cursor))
    return Prepare(start, cursor.end, verb, name, source=source, using=tuple(using))


def _parameter(cursor: Cursor) -> Expression:
    if not cursor.dialect.has_mariadb(10, 2) and cursor.kind is not TokenKind.USER_VARIABLE:
        raise cursor.stop("a variable")
    return read_expression(cursor)


def read_deallocate(cursor: Cursor) -> Node:
    """DEALLOCATE PREPARE; DROP PREPARE is the same."""
    start = cursor.start
    cursor.advance()
    cursor.expect("PREPARE")
    name = cursor.identifier()
    return Prepare(start, cursor.end, "DEALLOCATE", name)


# Locks ----------------------------------------------------------------------------------------


def read_lock(cursor: Cursor) -> Node:
    """LOCK TABLES, LOCK INSTANCE FOR BACKUP, and UNLOCK of each."""
    start = cursor.start
    verb = cursor.advance().word
    what = cursor.word
    verb = f"{verb} {'TABLES' if what == 'TABLE' else what}"
    if verb != "LOCK TABLES" or cursor.word_ahead(1) == "FOR":
        if not what:
            raise cursor.stop("TABLES")
        _skip_rest(cursor)
        return Lock(start, cursor.end, verb)
    cursor.advance()
    tables: list[tuple[TableUse, str]] = []
    while True:
        tables.append(_locked_table(cursor))
        if not cursor.accept_operator(","):
            break
    skip_wait(cursor)
    return Lock(start, cursor.end, verb, tuple(tables))


def _locked_table(cursor: Cursor) -> tuple[TableUse, str]:
    name = read_object_name(cursor)
    alias = None
    if cursor.accept("AS") or cursor.word not in ("READ", "WRITE", "LOW_PRIORITY"):
        alias = cursor.identifier()
    words = [cursor.accept_any(("READ", "WRITE", "LOW_PRIORITY"))]
    match words[0]:
        case "READ":
            words.append(cursor.accept_any(("LOCAL",)))
        case "WRITE" if cursor.dialect.may_be_mariadb:
            words.append(cursor.accept_any(("CONCURRENT",)))
        case "LOW_PRIORITY":
            cursor.expect("WRITE")
            words.append("WRITE")
        case "":
            raise cursor.stop("READ or WRITE")
    table = TableUse(name.at, cursor.end, name, alias)
    return table, " ".join(filter(None, words))


def skip_wait(cursor: Cursor) -> None:
    """How long MariaDB waits for locks: NOWAIT or WAIT n."""
    if not cursor.dialect.may_be_mariadb:
        return
    if not cursor.accept("NOWAIT") and cursor.accept("WAIT"):
        cursor.advance()


# Diagnostics ----------------------------------------------------------------------------------


def read_signal(cursor: Cursor) -> Node:
    """SIGNAL and RESIGNAL."""
    start = cursor.start
    verb = cursor.advance().word
    condition = ""
    if cursor.word not in {"SET", ";"} and not cursor.is_at_end:
        condition = read_condition(cursor)
    elif verb == "SIGNAL":
        raise cursor.stop("a condition")
    items: list[tuple[str, Expression]] = []
    if cursor.accept("SET"):
        while True:
            name = cursor.identifier().upper()
            cursor.expect_operator("=")
            items.append((name, read_expression(cursor)))
            if not cursor.accept_operator(","):
                break
    return Diagnostics(start, cursor.end, verb, condition, tuple(items))


def read_condition(cursor: Cursor) -> str:
    """SQLSTATE, or the name of a condition."""
    if cursor.accept("SQLSTATE"):
        cursor.accept("VALUE")
        if cursor.kind is not TokenKind.STRING:
            raise cursor.stop("a string")
        return f"SQLSTATE {cursor.advance().value}"
    return cursor.identifier()


def read_get_diagnostics(cursor: Cursor) -> Node:
    """GET [CURRENT | STACKED] DIAGNOSTICS."""
    start = cursor.start
    cursor.expect("GET")
    cursor.accept_any(("CURRENT", "STACKED"))
    cursor.expect("DIAGNOSTICS")
    if cursor.accept("CONDITION"):
        read_expression(cursor)
    targets: list[Name | UserVariable] = []
    items: list[tuple[str, Expression]] = []
    while True:
        target = read_variable(cursor)
        cursor.expect_operator("=")
        targets.append(target)
        items.append((cursor.identifier().upper(), target))
        if not cursor.accept_operator(","):
            break
    return Diagnostics(
        start, cursor.end, "GET DIAGNOSTICS", items=tuple(items), targets=tuple(targets)
    )


def read_variable(cursor: Cursor) -> Name | UserVariable:
    """What a value goes into: `@name`, a local variable, a field of one."""
    token = cursor.token
    if token.kind is TokenKind.USER_VARIABLE:
        cursor.advance()
        return UserVariable(token.offset, token.end, user_variable_name(token.text))
    parts = [cursor.identifier()]
    while cursor.accept_operator("."):
        parts.append(cursor.identifier())
    return Name(token.offset, cursor.end, tuple(parts))


def read_binlog(cursor: Cursor) -> Node:
    """BINLOG 'base64': rows events, as mysqlbinlog prints them."""
    start = cursor.start
    cursor.expect("BINLOG")
    while True:
        if cursor.kind not in (TokenKind.STRING, TokenKind.USER_VARIABLE):
            raise cursor.stop("a string")
        cursor.advance()
        if not cursor.accept_operator(","):
            return BinlogStatement(start, cursor.end)


# Administration -------------------------------------------------------------------------------


def read_use(cursor: Cursor) -> Node:
    """USE."""
    start = cursor.start
    cursor.expect("USE")
    name = cursor.object_identifier()
    return Administration(start, cursor.end, "USE", name=name)


def read_session(cursor: Cursor) -> Node:
    """What changes nothing that is logged."""
    start = cursor.start
    words = [cursor.advance().word]
    length = _VERB_LENGTHS.get(words[0], 1)
    while len(words) < length and _names_command(cursor.word):
        words.append(cursor.advance().word)
    _skip_rest(cursor)
    return Administration(start, cursor.end, " ".join(words))


def read_explain(cursor: Cursor, statement: StatementReader) -> Node:
    """EXPLAIN, DESCRIBE: of a statement, a table or a connection."""
    start = cursor.start
    verb = cursor.advance().word
    cursor.accept_any(("EXTENDED", "PARTITIONS"))
    options: set[str] = set()
    if cursor.word == "ANALYZE" and cursor.word_ahead(1) not in ("", ";"):
        cursor.advance()
        options.add("ANALYZE")
    if cursor.word == "FORMAT" and cursor.word_ahead(1) == "=":
        cursor.expect("FORMAT")
        cursor.expect_operator("=")
        _word_or_string(cursor)
        if cursor.accept("INTO"):
            cursor.advance()
    if cursor.word == "FOR" and cursor.word_ahead(1) in ("SCHEMA", "DATABASE"):
        cursor.expect("FOR", cursor.word_ahead(1))
        cursor.identifier()
    if cursor.word in _EXPLAINED or cursor.word == "(":
        inner = statement(cursor)
        return Administration(start, cursor.end, verb, options=frozenset(options), statement=inner)
    _skip_rest(cursor)
    return Administration(start, cursor.end, verb, options=frozenset(options))


def read_maintenance(cursor: Cursor, statement: StatementReader) -> Node:
    """ANALYZE, OPTIMIZE, REPAIR and CHECK of tables; MariaDB's ANALYZE of a statement runs it."""
    start = cursor.start
    verb = cursor.advance().word
    option = cursor.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL"))
    options = frozenset((option,)) if option else frozenset()
    word = cursor.accept_any(("TABLE", "TABLES", "VIEW"))
    if not word:
        if verb != "ANALYZE" or option or not cursor.dialect.may_be_mariadb:
            raise cursor.stop("TABLE")
        if cursor.accept("FORMAT"):
            cursor.expect_operator("=")
            _word_or_string(cursor)
        if cursor.word not in _EXPLAINED and cursor.word != "(":
            raise cursor.stop("TABLE or a statement")
        inner = statement(cursor)
        return Administration(start, cursor.end, "ANALYZE", statement=inner)
    tables = _tables(cursor)
    if cursor.word in _MARIADB_UPKEEP and not cursor.dialect.may_be_mariadb:
        raise cursor.stop("the end of the statement")
    if cursor.word in _MYSQL_UPKEEP and not cursor.dialect.may_be_mysql:
        raise cursor.stop("the end of the statement")
    _skip_rest(cursor)
    verb = f"{verb} {'VIEW' if word == 'VIEW' else 'TABLE'}"
    return Administration(start, cursor.end, verb, tables, options=options)


def read_flush(cursor: Cursor) -> Node:
    """FLUSH."""
    start = cursor.start
    cursor.expect("FLUSH")
    options: set[str] = set(filter(None, (cursor.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL")),)))
    words = [cursor.word_ahead(count) for count in range(2)]
    if not words[0]:
        raise cursor.stop("what to flush")
    tables: tuple[ObjectName, ...] = ()
    if cursor.accept_any(("TABLE", "TABLES")):
        words = ["TABLES"]
        if cursor.word != ";" and not cursor.is_at_end and cursor.word not in ("WITH", "FOR"):
            tables = _tables(cursor)
        option = _option(cursor, ("WITH READ LOCK", "FOR EXPORT"))
        if option:
            options.add(option)
    _skip_rest(cursor)
    verb = " ".join(["FLUSH", *filter(_names_command, words)])
    return Administration(start, cursor.end, verb, tables, options=frozenset(options))


def _names_command(word: str) -> bool:
    """Whether a word is part of a command's name."""
    return word[:1].isalpha() and word not in _NO_VERB_WORDS


def _tables(cursor: Cursor) -> tuple[ObjectName, ...]:
    found = [read_object_name(cursor)]
    while cursor.accept_operator(","):
        found.append(read_object_name(cursor))
    return tuple(found)


_EXPLAINED: Final = ("SELECT", "WITH", "TABLE", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE")
_VERB_LENGTHS: Final = {
    **dict.fromkeys(
        (
            *("SHOW", "RESET", "CHANGE", "STOP", "PURGE", "CACHE", "INSTALL", "UNINSTALL"),
            *("CHECKSUM", "IMPORT", "BACKUP", "CLONE"),
        ),
        3,
    ),
    "LOAD": 2,
    "SET": 3,
}
"""How many words name a command that begins with one, at most; one if nothing else is said."""
_NO_VERB_WORDS: Final = frozenset(
    ("", "FROM", "IN", "LIKE", "WHERE", "FOR", "LIMIT", "TO", "WITH", "BEFORE")
)
