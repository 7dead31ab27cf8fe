"""Views, routines, triggers, events and LOAD DATA as the servers write them anew for the log.

Source: MariaDB 10.11 sql/sql_view.cc `mysql_create_view`, sql/sp.cc `show_create_sp`,
sql/sql_trigger.cc, sql/events.cc and sql/sql_load.cc `write_execute_load_query_log_event`; MySQL 9.7
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from binlane.codec.load_data import DuplicateHandling, ExecuteLoadQueryEvent
from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.session.state import SessionState, SessionStatement
from binlane.sql.evaluation.evaluator import content_of
from binlane.sql.facts import StatementFacts
from binlane.sql.show_create import column_type
from binlane.sql.table_definitions import typed_column
from binlane.sql.tree.definitions import Account, CreateRoutine, CreateTrigger, CreateView, Event
from binlane.sql.tree.expressions import Name, Node, ObjectName, UserVariable
from binlane.sql.tree.statements import Assignment, LoadData

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
        "LANGUAGE JAVASCRIPT": (3, "    LANGUAGE JAVASCRIPT\n"),
        "LANGUAGE SQL": (3, ""),
    }
)
"""By characteristic: its place among those that are printed, and how it is printed."""


def definition_text(state: SessionState, statement: SessionStatement) -> str:
    """The text of a CREATE of a program or view, or of ALTER VIEW, as it is logged."""
    write = _WRITERS.get(type(statement.facts.tree))
    found = None if write is None else write(_Writer(state, statement), statement.facts.tree)
    return statement.text if found is None else found


class _Writer:
    """Writes a definition anew."""

    def __init__(self, state: SessionState, statement: SessionStatement) -> None:
        self.state = state
        self.facts: StatementFacts = statement.facts
        self.database = statement.database

    def definer(self, account: Account | None) -> str:
        name = self.state.identity.account if account is None else self.state.account(account)
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


def _view(writer: _Writer, node: CreateView) -> str | None:
    if node.kind:
        return None
    verb = "CREATE OR REPLACE" if node.is_or_replace else node.verb.partition(" ")[0]
    shown = writer.name(node.name, is_default_shown=False)
    if node.columns:
        shown += f"({', '.join(map(writer.state.quote, node.columns))})"
    condition = "IF NOT EXISTS " if node.if_not_exists else ""
    return (
        f"{verb} ALGORITHM={node.algorithm or 'UNDEFINED'} DEFINER={writer.definer(node.definer)} "
        f"SQL SECURITY {node.security or 'DEFINER'} VIEW {condition}{shown} AS "
        f"{writer.rest(node.query_at)}"
    )


def _trigger(writer: _Writer, node: CreateTrigger) -> str:
    return _from_its_kind(writer, node.name, node.definer, is_or_replace=node.is_or_replace)


def _event(writer: _Writer, node: Event) -> str | None:
    if not node.verb.startswith("CREATE"):
        return None
    return _from_its_kind(writer, node.name, node.definer, is_or_replace=node.is_or_replace)


def _from_its_kind(
    writer: _Writer, name: ObjectName, definer: Account | None, *, is_or_replace: bool
) -> str:
    """A trigger or event: only what stands before the word for its kind is written anew."""
    verb = "CREATE OR REPLACE" if is_or_replace else "CREATE"
    kind = writer.facts.verb.rpartition(" ")[2]
    # Between that word and the name there is no other one of these letters but IF NOT EXISTS.
    before = writer.between(writer.facts.tree.at, name.at)
    at = writer.facts.tree.at + before.upper().rfind(kind)
    return f"{verb} DEFINER={writer.definer(definer)} {writer.rest(at)}"


def _routine(writer: _Writer, node: CreateRoutine) -> str | None:
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
        f"{_characteristics(writer, node)}{writer.rest(node.body_at)}"
    )


def _parameters(writer: _Writer, node: CreateRoutine) -> str:
    """As they are written; MariaDB leaves out what stands before the first one of a function."""
    start, end = node.parameters_at + 1, node.parameters_end - 1
    if node.verb == "CREATE FUNCTION" and writer.state.server.is_mariadb:
        start = node.parameters[0].at if node.parameters else end
    return writer.between(start, end) if start < end else ""


def _returned_type(writer: _Writer, node: CreateRoutine) -> str:
    """The type of a function, as the servers print that of a column."""
    state, flavor = writer.state, Flavor(writer.state.server.flavor)
    assert node.returns is not None
    charset = state.objects.charset_of_database(writer.database)
    server_charset = charset or state.server.default("character_set_server")
    column = typed_column(node.returns, server_charset)
    shown = column_type(column, flavor)
    if column.charset is None or column.charset == "binary":
        return shown
    shown += f" CHARSET {column.charset}"
    if flavor is Flavor.MARIADB:
        collation = column.collation or state.server.default_collation(column.charset)
        shown += f" COLLATE {collation}"
    return shown


def _characteristics(writer: _Writer, node: CreateRoutine) -> str:
    """COMMENT, SQL SECURITY and their like, in the order in which the servers print them."""
    printed = [""] * 5
    for words in node.characteristics:
        place, text = _TRAITS.get(words, (3, ""))
        printed[place] = text
    if node.comment is not None:
        text = content_of(node.comment, writer.facts).replace("\\", "\\\\").replace("'", "''")
        printed[4] = f"    COMMENT '{text}'\n" if text else ""
    return "".join(printed)


_WRITERS: Final[Mapping[type[Node], Callable[[_Writer, Any], str | None]]] = MappingProxyType(
    {CreateView: _view, CreateTrigger: _trigger, Event: _event, CreateRoutine: _routine}
)

_ESCAPES: Final = str.maketrans(
    {"\n": "\\n", "\r": "\\r", "\\": "\\\\", "\b": "\\b", "\t": "\\t", "'": "\\'", "\0": "\\0"}
)
_DUPLICATES: Final = MappingProxyType(
    {
        "": DuplicateHandling.ERROR,
        "IGNORE": DuplicateHandling.IGNORE,
        "REPLACE": DuplicateHandling.REPLACE,
    }
)
_FORMATS: Final = MappingProxyType({"TERMINATED": "\t", "ENCLOSED": "", "ESCAPED": "\\"})
"""What FIELDS says where the statement does not."""


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
        f"{before}{'LOCAL ' if is_local else ''}INFILE {_shown(content_of(node.file, facts))} "
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
    """What stands behind INTO: all options, as the servers' defaults have them."""
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
    skipped = "" if node.skipped is None else facts.text_of(node.skipped)
    assigned = ", ".join(_assignment(state, one, facts) for one in node.assignments)
    parts = [
        f" TABLE {quote(given.name if name.database == statement.database else name)}",
        f" CHARACTER SET {node.charset}" if node.charset else "",
        f" FIELDS TERMINATED BY {_shown(separator)}",
        " OPTIONALLY " if is_optionally else "",
        f" ENCLOSED BY {_shown(enclosed)} ESCAPED BY {_shown(escaped)}",
        f" LINES TERMINATED BY {_shown(lines.get('TERMINATED', ends))}",
        f" STARTING BY {_shown(lines['STARTING'])}" if lines.get("STARTING") else "",
        f" IGNORE {skipped} LINES " if skipped not in ("", "0") else "",
        f" ({', '.join(_columns(state, name, node, facts))})",
        f" SET {assigned}" if assigned else "",
    ]
    return "".join(parts)


def _columns(
    state: SessionState, name: TableName, node: LoadData, facts: StatementFacts
) -> list[str]:
    """What the fields are read into: what the statement names, else all columns."""
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
    """A column with what the text says behind the sign, blanks too."""
    text = facts.text[facts.place(node.column.end) : facts.place(node.end)]
    return f"{state.quote(node.column.parts[-1])}={text.partition('=')[2]}"


def _shown(text: str) -> str:
    return f"'{text.translate(_ESCAPES)}'"
