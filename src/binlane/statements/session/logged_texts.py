"""Texts of statements that the servers write anew for the log.

These are views, routines, triggers, events and LOAD DATA; of account statements most of MySQL's and a few of
MariaDB's: passwords as hashes, options in MySQL's own order. The hashes are random and stand as `#`.

Source: MariaDB 10.11 sql/sql_view.cc `mysql_create_view`, sql/sp.cc `show_create_sp`,
sql/sql_trigger.cc, sql/events.cc, sql/sql_load.cc `write_execute_load_query_log_event` and
sql/sql_acl.cc; MySQL 9.7 alike, and sql/sql_rewrite.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from binlane.log.codec.load_data import DuplicateHandling, ExecuteLoadQueryEvent
from binlane.log.codec.password_hashes import native_hash, old_hash
from binlane.log.codec.types import Flavor
from binlane.names import TableName, quote
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.accounts import AccountName
from binlane.statements.sql.evaluation.evaluator import content_of
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.parser import cursor_over
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.show_create import column_type
from binlane.statements.sql.table_definitions import string_of, typed_column
from binlane.statements.sql.tree.account_statements import (
    Account,
    AccountClause,
    AccountStatement,
    Credential,
    Privilege,
)
from binlane.statements.sql.tree.definitions import (
    CreateLibrary,
    CreateRoutine,
    CreateTrigger,
    CreateView,
    Event,
    ObjectStatement,
    UsedLibrary,
)
from binlane.statements.sql.tree.expressions import (
    Literal,
    LiteralKind,
    Name,
    Node,
    ObjectName,
    UserVariable,
)
from binlane.statements.sql.tree.statements import Assignment, LoadData
from binlane.statements.sql.views import attributes

_TRAITS: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        "NO SQL": (0, "    NO SQL\n"),
        "READS SQL DATA": (0, "    READS SQL DATA\n"),
        "MODIFIES SQL DATA": (0, "    MODIFIES SQL DATA\n"),
        "CONTAINS SQL": (0, ""),
        "DETERMINISTIC": (1, "    DETERMINISTIC\n"),
        "NOT DETERMINISTIC": (1, ""),
        "SQL SECURITY INVOKER": (2, "    SQL SECURITY INVOKER\n"),
        "SQL SECURITY DEFINER": (2, ""),
        "LANGUAGE SQL": (3, ""),
    }
)
"""By characteristic: its place among those that are printed, and how it is printed."""


def definition_text(state: SessionState, statement: SessionStatement) -> str:
    """Return the text of a CREATE of a program or view, or of ALTER VIEW, as it is logged."""
    write = _WRITERS.get(type(statement.facts.tree))
    found = (
        None if write is None else write(_DefinitionWriter(state, statement), statement.facts.tree)
    )
    return statement.text if found is None else found


class _DefinitionWriter:
    """Writes a definition anew."""

    def __init__(self, state: SessionState, statement: SessionStatement) -> None:
        self.state = state
        self.facts: StatementFacts = statement.facts
        self.database = statement.database

    def definer(self, account: Account | None) -> str:
        return self.shown(
            self.state.identity.account if account is None else self.state.account(account)
        )

    def shown(self, name: AccountName) -> str:
        quote = self.state.quote
        return quote(name.user) if name.is_role else f"{quote(name.user)}@{quote(name.host)}"

    def name(self, name: ObjectName, *, is_default_shown: bool = True) -> str:
        quote = self.state.quote
        if name.database is None or (name.database == self.database and not is_default_shown):
            return quote(name.name)
        return f"{quote(name.database)}.{quote(name.name)}"

    def rest(self, at: int) -> str:
        """The text from a place of the tree; MySQL leaves out a comment at the end."""
        facts = self.facts
        is_whole = self.state.server.is_mariadb
        end = len(facts.text) if is_whole else facts.place(facts.tree.end)
        return facts.text[facts.place(at) : end].strip()

    def between(self, at: int, end: int) -> str:
        return self.facts.text_of(Node(at, end))


def _view(writer: _DefinitionWriter, node: CreateView) -> str | None:
    verb = "CREATE OR REPLACE" if node.is_or_replace else node.verb.partition(" ")[0]
    shown = writer.name(node.name, is_default_shown=False)
    if node.columns:
        shown += f"({', '.join(map(writer.state.quote, node.columns))})"
    condition = "IF NOT EXISTS " if node.if_not_exists else ""
    objects, is_mariadb = writer.state.objects, writer.state.server.is_mariadb
    old = objects.base_view(writer.facts.effects.objects[0])
    kept = attributes(node, old, is_mariadb=is_mariadb)
    definer = writer.definer(node.definer) if kept.definer is None else writer.shown(kept.definer)
    algorithm, kind = kept.algorithm, ""
    if node.kind == "MATERIALIZED":
        algorithm += " MATERIALIZED /*(BY ENGINE=UNKNOWN)*/"
    elif node.kind:
        kind = "JSON RELATIONAL DUALITY "
    return (
        f"{verb} ALGORITHM={algorithm} DEFINER={definer} SQL SECURITY "
        f"{'INVOKER' if kept.is_invoker else 'DEFINER'} {kind}VIEW {condition}{shown} AS "
        f"{writer.rest(node.query_at)}"
    )


def _trigger(writer: _DefinitionWriter, node: CreateTrigger) -> str:
    return _from_its_kind(writer, node.name, node.definer, is_or_replace=node.is_or_replace)


def _event(writer: _DefinitionWriter, node: Event) -> str | None:
    if not node.verb.startswith("CREATE"):
        return None
    return _from_its_kind(writer, node.name, node.definer, is_or_replace=node.is_or_replace)


def _from_its_kind(
    writer: _DefinitionWriter, name: ObjectName, definer: Account | None, *, is_or_replace: bool
) -> str:
    """Return a trigger or event: only the text before the word for its kind is written anew."""
    verb = "CREATE OR REPLACE" if is_or_replace else "CREATE"
    kind = writer.facts.verb.rpartition(" ")[2]
    # Between that word and the name there is no other one of these letters but IF NOT EXISTS.
    before = writer.between(writer.facts.tree.at, name.at)
    at = writer.facts.tree.at + before.upper().rfind(kind)
    return f"{verb} DEFINER={writer.definer(definer)} {writer.rest(at)}"


def _routine(writer: _DefinitionWriter, node: CreateRoutine) -> str | None:
    if node.body_at < 0:
        return None
    verb = "CREATE OR REPLACE" if node.is_or_replace else "CREATE"
    kind = node.verb.rpartition(" ")[2]
    aggregate = "AGGREGATE " if node.is_aggregate else ""
    condition = "IF NOT EXISTS " if node.if_not_exists else ""
    word = "RETURN" if writer.facts.dialect.is_oracle else "RETURNS"
    returns = f" {word} {_returned_type(writer, node)}" if node.returns is not None else ""
    return (
        f"{verb} DEFINER={writer.definer(node.definer)} {aggregate}{kind} {condition}"
        f"{writer.name(node.name)}({_parameters(writer, node)}){returns}\n"
        f"{_characteristics(writer, node)}"
        f"{writer.rest(node.body_at) if node.code is None else _code(writer, node.code, node.language)}"
    )


def _library(writer: _DefinitionWriter, node: CreateLibrary) -> str:
    condition = "IF NOT EXISTS " if node.if_not_exists else ""
    assert node.code is not None, "it stands in each"
    text = "" if node.comment is None else content_of(node.comment, writer.facts)
    comment = f"    COMMENT '{text.translate(_ESCAPES_OF_LIBRARIES)}'\n" if text else ""
    return (
        f"CREATE LIBRARY {condition}{writer.name(node.name)}\n{comment}"
        f"    LANGUAGE {node.language}\n{_code(writer, node.code, node.language)}"
    )


def _code(writer: _DefinitionWriter, code: Literal, language: str) -> str:
    """Return MySQL's print of code in another language, where `$$` may be a part of the code."""
    content = content_of(code, writer.facts)
    if code.kind is LiteralKind.HEX:
        return f"AS 0x{content.encode('latin-1').hex().upper()}"
    mark = f"${language}$" if "$$" in content else "$$"
    return f"AS {mark}{content}{mark}"


def _parameters(writer: _DefinitionWriter, node: CreateRoutine) -> str:
    """Return the parameters as written; MariaDB leaves out all text before a function's first one."""
    start, end = node.parameters_at + 1, node.parameters_end - 1
    if node.verb == "CREATE FUNCTION" and writer.state.server.is_mariadb:
        start = node.parameters[0].at if node.parameters else end
    return writer.between(start, end) if start < end else ""


def _returned_type(writer: _DefinitionWriter, node: CreateRoutine) -> str:
    """The type of a function, as the servers print that of a column."""
    state, flavor = writer.state, Flavor(writer.state.server.flavor)
    assert node.returns is not None
    charset = state.objects.charset_of_database(writer.database)
    server_charset = charset or state.server.default("character_set_server")
    column = typed_column(node.returns, server_charset)
    shown = column_type(column, flavor)
    is_json = column.type_name == "JSON" and flavor is Flavor.MYSQL
    if column.charset is None or column.charset == "binary" or is_json:
        return shown
    shown += f" CHARSET {column.charset}"
    if flavor is Flavor.MARIADB:
        collation = column.collation or state.server.default_collation(column.charset)
        shown += f" COLLATE {collation}"
    return shown


def _characteristics(writer: _DefinitionWriter, node: CreateRoutine) -> str:
    """COMMENT, SQL SECURITY and their like, in the order in which the servers print them."""
    printed = [""] * 5
    for words in node.characteristics:
        place, text = _TRAITS.get(words, (3, ""))
        printed[place] = text
    if node.language:
        printed[3] = f"    LANGUAGE {node.language}\n"
        used = ", ".join(_used_library(writer, one, node.name) for one in node.libraries)
        printed[3] += f"    USING ({used})\n" if used else ""
    if node.comment is not None:
        printed[4] = _comment(writer, content_of(node.comment, writer.facts))
    return "".join(printed)


def _used_library(writer: _DefinitionWriter, used: UsedLibrary, routine: ObjectName) -> str:
    database = used.name.database or routine.database or writer.database
    alias = f" AS {writer.state.quote(used.alias)}" if used.alias else ""
    return f"{writer.state.quote(database)}.{writer.state.quote(used.name.name)}{alias}"


def _comment(writer: _DefinitionWriter, text: str) -> str:
    """COMMENT of a routine or package, if it says anything."""
    text = text.replace("'", "''")
    if not writer.facts.dialect.no_backslash_escapes:
        text = text.replace("\\", "\\\\")
    return f"    COMMENT '{text}'\n" if text else ""


def _package(writer: _DefinitionWriter, node: ObjectStatement) -> str | None:
    """Return the text of CREATE PACKAGE."""
    if not node.verb.startswith("CREATE PACKAGE") or node.name is None:
        return None
    rest = writer.rest(node.name.end)
    cursor = cursor_over(rest, writer.facts.dialect)
    is_invoker, comment = False, ""
    while cursor.word in ("COMMENT", "SQL"):
        if cursor.advance().word == "COMMENT":
            comment = cursor.string()
        else:
            cursor.expect("SECURITY")
            is_invoker = cursor.advance().word == "INVOKER"
    security = "    SQL SECURITY INVOKER\n" if is_invoker else ""
    verb = "CREATE OR REPLACE" if node.is_or_replace else "CREATE"
    condition = "IF NOT EXISTS " if node.if_exists else ""
    return (
        f"{verb} DEFINER={writer.definer(node.definer)} {node.verb.partition(' ')[2]} {condition}"
        f"{writer.name(node.name)}{security}{_comment(writer, comment)} {rest[cursor.start :]}"
    )


_WRITERS: Final[Mapping[type[Node], Callable[[_DefinitionWriter, Any], str | None]]] = (
    MappingProxyType(
        {
            CreateView: _view,
            CreateTrigger: _trigger,
            Event: _event,
            CreateRoutine: _routine,
            CreateLibrary: _library,
            ObjectStatement: _package,
        }
    )
)

_ESCAPES: Final = str.maketrans(
    {"\n": "\\n", "\r": "\\r", "\\": "\\\\", "\b": "\\b", "\t": "\\t", "'": "\\'", "\0": "\\0"}
)
_ESCAPES_OF_LIBRARIES: Final = {**_ESCAPES, ord("'"): "''"}
_DUPLICATES: Final = MappingProxyType(
    {
        "": DuplicateHandling.ERROR,
        "IGNORE": DuplicateHandling.IGNORE,
        "REPLACE": DuplicateHandling.REPLACE,
    }
)
_FORMATS: Final = MappingProxyType({"TERMINATED": "\t", "ENCLOSED": "", "ESCAPED": "\\"})
"""Defaults of FIELDS for the parts that the statement leaves out."""


def load_event(state: SessionState, statement: SessionStatement) -> ExecuteLoadQueryEvent:
    """The event of the statement, written anew, behind the blocks of its file."""
    facts = statement.facts
    node = facts.tree
    assert isinstance(node, LoadData)
    is_local = "LOCAL" in node.modifiers
    duplicates = "REPLACE" if "REPLACE" in node.modifiers else ""
    if not duplicates and (is_local or "IGNORE" in node.modifiers):
        duplicates = "IGNORE"
    before = "LOAD DATA CONCURRENT " if "CONCURRENT" in node.modifiers else "LOAD DATA "
    head = (
        f"{before}{'LOCAL ' if is_local else ''}INFILE {_shown(content_of(node.file, facts), facts)} "
        f"{f'{duplicates} ' if duplicates else ''}INTO"
    )
    return ExecuteLoadQueryEvent(
        statement=state.query(head + _rest(state, statement, node), statement.database),
        file_id=0,
        name_start=len(before),
        name_end=len(head.encode("utf-8", "surrogateescape")),
        duplicate_handling=_DUPLICATES[duplicates],
    )


def _rest(state: SessionState, statement: SessionStatement, node: LoadData) -> str:
    """Return the text behind INTO: all options, as the servers' defaults have them."""
    facts, quote = statement.facts, state.quote
    given = node.table.name
    name = TableName(given.database or statement.database, given.name)
    fields = {word.rpartition(" ")[2]: content_of(text, facts) for word, text in node.fields}
    lines = {word: content_of(text, facts) for word, text in node.lines}
    ends = "<row>" if node.verb == "LOAD XML" else "\n"
    if node.row_tag is not None:
        ends = content_of(node.row_tag, facts)
    separator, enclosed, escaped = ({**_FORMATS, **fields}[word] for word in _FORMATS)
    is_optionally = any(word.startswith("OPTIONALLY") for word, _ in node.fields)
    behind = "" if state.server.has(Fact.LOADS_IN_SINGLE_SPACES) else " "
    skipped = "" if node.skipped is None else facts.text_of(node.skipped)
    assigned = ", ".join(_assignment(state, one, facts) for one in node.assignments)
    parts = [
        f" TABLE {quote(given.name if name.database == statement.database else name)}",
        f" CHARACTER SET {node.charset}" if node.charset else "",
        f" FIELDS TERMINATED BY {_shown(separator, facts)}",
        f" OPTIONALLY{behind}" if is_optionally else "",
        f" ENCLOSED BY {_shown(enclosed, facts)} ESCAPED BY {_shown(escaped, facts)}",
        f" LINES TERMINATED BY {_shown(lines.get('TERMINATED', ends), facts)}",
        f" STARTING BY {_shown(lines['STARTING'], facts)}" if lines.get("STARTING") else "",
        f" IGNORE {skipped} LINES " if skipped not in ("", "0") else "",
        f" ({', '.join(_columns(state, name, node, facts))})",
        f" SET {assigned}" if assigned else "",
    ]
    return "".join(parts)


def _columns(
    state: SessionState, name: TableName, node: LoadData, facts: StatementFacts
) -> list[str]:
    """Return the targets of the fields: those that the statement names, else all columns."""
    if node.columns:
        return [_target(state, one, facts) for one in node.columns]
    table = state.objects.table(name)
    columns = () if table is None else table.definition.columns
    return [state.quote(column.name) for column in columns if not column.generated]


def _target(state: SessionState, node: Name | UserVariable, facts: StatementFacts) -> str:
    if isinstance(node, Name):
        return state.quote(node.parts[-1])
    return f"@{state.quote(facts.text_of(node)[1:].strip('`'))}"


def _assignment(state: SessionState, node: Assignment, facts: StatementFacts) -> str:
    """Return a column with the text behind the `=`, blanks included."""
    text = facts.text[facts.place(node.column.end) : facts.place(node.end)]
    return f"{state.quote(node.column.parts[-1])}={text.partition('=')[2]}"


def _shown(text: str, facts: StatementFacts) -> str:
    if facts.dialect.no_backslash_escapes:
        return "'" + text.replace("'", "''") + "'"
    return f"'{text.translate(_ESCAPES)}'"


_PLUGIN: Final = "'caching_sha2_password'"
_PRIVILEGES: Final = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "RELOAD", "SHUTDOWN", "PROCESS"),
    *("FILE", "REFERENCES", "INDEX", "ALTER", "SHOW DATABASES", "SUPER"),
    *("CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "REPLICATION SLAVE"),
    *("REPLICATION CLIENT", "CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE"),
    *("CREATE USER", "EVENT", "TRIGGER", "CREATE TABLESPACE", "CREATE ROLE", "DROP ROLE"),
)
"""Privileges in the order in which the server writes them; others follow."""
_CLAUSES: Final = (
    *("REQUIRE", "WITH", "PASSWORD EXPIRE", "ACCOUNT", "PASSWORD HISTORY"),
    *("PASSWORD REUSE INTERVAL", "PASSWORD REQUIRE CURRENT", "FAILED_LOGIN_ATTEMPTS"),
    *("PASSWORD_LOCK_TIME", "COMMENT", "ATTRIBUTE"),
)
"""Clauses in the order in which the server writes them."""
_ORDERED: Final = (
    *("SUBJECT", "ISSUER", "CIPHER", "MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR"),
    *("MAX_CONNECTIONS_PER_HOUR", "MAX_USER_CONNECTIONS"),
)
"""Options that stand in a clause as pairs, in the order in which the server writes them."""
_ACCOUNT_ESCAPES: Final = str.maketrans({"'": "\\'", '"': '\\"', "\\": "\\\\"})


def account_text(state: SessionState, statement: SessionStatement) -> str:
    """The text of an account statement in the log."""
    tree = statement.facts.tree
    assert isinstance(tree, AccountStatement)
    writers = _MARIADB if state.server.is_mariadb else _MYSQL
    write = writers.get(tree.verb)
    text = None if write is None else write(_AccountWriter(state, statement, tree))
    return statement.text if text is None else text


@dataclass(frozen=True, slots=True)
class _AccountWriter:
    """A statement that is written anew."""

    state: SessionState
    statement: SessionStatement
    tree: AccountStatement

    def account(self, account: Account) -> str:
        """An account with quotes."""
        user, host = account.user, account.host or "%"
        if account.is_current:
            user, host = self.state.identity.account
        if self.state.server.is_mariadb:
            return f"'{user}'@'{host}'"
        return f"{_string(user)}@{_string(host)}"

    def accounts(self, accounts: Iterable[Account]) -> str:
        """Return several accounts, with commas between them."""
        return ",".join(map(self.account, accounts))

    @property
    def subject(self) -> str:
        """The one account that a SET is about: the session's own where none is named."""
        own = Account(0, 0, "CURRENT_USER", is_current=True)
        return self.account(self.tree.accounts[0] if self.tree.accounts else own)

    def value(self, part: str | Literal) -> str:
        """A word, number or string of a clause."""
        return _string(string_of(part, self.statement.facts)) if isinstance(part, Literal) else part

    def secret(self, credential: Credential) -> str:
        """Return a password; empty where the credential has none."""
        secret = credential.secret
        return "" if secret is None else string_of(secret, self.statement.facts)


def _string(value: str) -> str:
    return f"'{value.translate(_ACCOUNT_ESCAPES)}'"


# MariaDB ------------------------------------------------------------------------------------------


def _mariadb_password(writer: _AccountWriter) -> str:
    (credential,) = writer.tree.credentials
    assert credential is not None, "SET PASSWORD has one"
    value = writer.secret(credential)
    if not credential.is_hash:
        of_text = old_hash if credential.plugin else native_hash
        value = of_text(value.encode())
    return f"SET PASSWORD FOR {writer.subject}='{value}'"


def _mariadb_role(writer: _AccountWriter) -> str:
    role = writer.tree.roles[0].user if writer.tree.roles else "NONE"
    return f"SET DEFAULT ROLE '{role}' FOR {writer.subject}"


# MySQL --------------------------------------------------------------------------------------------


def _password(writer: _AccountWriter) -> str:
    (credential,) = writer.tree.credentials
    assert credential is not None, "SET PASSWORD has one"
    value = "#" if credential.is_random or writer.secret(credential) else ""
    return (
        f"ALTER USER {writer.subject} IDENTIFIED WITH {_PLUGIN} AS '{value}'"
        f"{_old_password(credential)}"
    )


def _user_statement(writer: _AccountWriter) -> str | None:
    tree = writer.tree
    if "DEFAULT ROLE" in tree.options:
        return None
    users = ",".join(
        writer.account(account) + _identified(writer, credential)
        for account, credential in zip(tree.accounts, tree.credentials, strict=True)
    )
    condition = "".join(f"{one} " for one in tree.options if one.startswith("IF"))
    roles = [writer.state.account(role) for role in tree.roles]
    default = ",".join(f"{quote(user)}@{quote(host)}" for user, host in roles)
    clauses = sorted(tree.clauses, key=lambda clause: _CLAUSES.index(clause.name))
    return (
        f"{tree.verb} {condition}{users}{' DEFAULT ROLE ' if default else ''}{default}"
        f"{''.join(_clause(writer, clause) for clause in clauses)}"
    )


def _identified(writer: _AccountWriter, credential: Credential | None) -> str:
    if credential is None or not credential.is_identified:
        is_new = writer.tree.verb == "CREATE USER"
        return f" IDENTIFIED WITH {_PLUGIN}" if is_new else _old_password(credential)
    plugin = f"'{credential.plugin}'" if credential.plugin else _PLUGIN
    text = f" IDENTIFIED WITH {plugin}"
    if credential.is_hash:
        text += f" AS {_string(writer.secret(credential))}"
    elif credential.is_random or credential.secret is not None:
        is_empty = not (credential.is_random or writer.secret(credential))
        text += f" AS '{'' if is_empty else '#'}'"
    return text + _old_password(credential)


def _old_password(credential: Credential | None) -> str:
    """Return the clause for the old password; the old password itself is not written."""
    return f" {credential.then}" if credential and credential.then else ""


def _clause(writer: _AccountWriter, clause: AccountClause) -> str:
    parts = [writer.value(part) for part in clause.parts]
    if parts and parts[0] in _ORDERED:
        given = dict(zip(parts[::2], parts[1::2], strict=True))
        parts = [f"{name} {given[name]}" for name in _ORDERED if name in given]
    return " ".join(("", clause.name, *parts))


def _grant(writer: _AccountWriter) -> str | None:
    tree = writer.tree
    if not tree.privileges:
        return None
    names = {one.name for one in tree.privileges}
    target = writer.account(tree.roles[0]) if "PROXY" in names else _grant_target(writer)
    gives_on = "WITH GRANT OPTION" in tree.options or "GRANT OPTION" in names
    end = " WITH GRANT OPTION" if gives_on else ""
    if tree.grantor is not None:
        word, roles = tree.grantor_roles
        listed = f"{' EXCEPT ' if word else ''}{writer.accounts(roles)}" if roles else ""
        end += f" AS {writer.account(tree.grantor)} WITH ROLE {word}{listed}"
        end += "" if word or roles else "NONE"
    privileges = ", ".join(
        _privilege(writer.state, one) for one in sorted(tree.privileges, key=_place)
    )
    return f"GRANT {privileges} ON {target} TO {writer.accounts(tree.accounts)}{end}"


def _place(privilege: Privilege) -> int:
    name = privilege.name
    return _PRIVILEGES.index(name) if name in _PRIVILEGES else len(_PRIVILEGES)


def _privilege(state: SessionState, privilege: Privilege) -> str:
    if privilege.name == "ALL":
        return "ALL PRIVILEGES"
    columns = ", ".join(map(state.quote, privilege.columns))
    return f"{privilege.name} ({columns})" if columns else privilege.name


def _grant_target(writer: _AccountWriter) -> str:
    tree, state = writer.tree, writer.state
    on = tree.on
    assert on is not None, "privileges are granted on something"
    if (on.database, on.name) == ("*", "*"):
        return "*.*"
    kind = "" if tree.object_kind == "TABLE" else f"{tree.object_kind} "
    name = "*" if on.name == "*" else state.quote(on.name)
    return f"{kind}{state.quote(on.database or writer.statement.database)}.{name}"


_Rewrite = Callable[[_AccountWriter], str | None]
_MARIADB: Final[Mapping[str, _Rewrite]] = MappingProxyType(
    {"SET PASSWORD": _mariadb_password, "SET DEFAULT ROLE": _mariadb_role}
)
_MYSQL: Final[Mapping[str, _Rewrite]] = MappingProxyType(
    {
        "CREATE USER": _user_statement,
        "ALTER USER": _user_statement,
        "SET PASSWORD": _password,
        "GRANT": _grant,
    }
)
