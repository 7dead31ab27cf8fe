"""LOAD DATA as the servers write it anew for a log in statement format.

Source: MariaDB 10.11 sql/sql_load.cc `write_execute_load_query_log_event`, MySQL 9.7 alike.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from binlane.codec.load_data import DuplicateHandling, ExecuteLoadQueryEvent
from binlane.names import TableName
from binlane.session.state import SessionState, SessionStatement
from binlane.sql.evaluation.evaluator import content_of
from binlane.sql.facts import StatementFacts
from binlane.sql.tree.expressions import Name, UserVariable
from binlane.sql.tree.statements import Assignment, LoadData

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
