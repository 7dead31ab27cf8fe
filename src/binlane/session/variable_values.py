"""System variables as expressions see them, and expressions as SET gives them to variables."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from binlane.programs.environment import SessionEnvironment
from binlane.programs.host import Host
from binlane.session.variables import Variables
from binlane.sql.evaluation.evaluator import Environment, evaluate
from binlane.sql.evaluation.values import UNKNOWN, Text, Value, plain_text
from binlane.sql.facts import Assignment, StatementFacts
from binlane.sql.tree.expressions import Literal, Name

_COLLATION: Final = "utf8mb3_general_ci"
_ISOLATION_NAMES: Final = ("tx_isolation", "transaction_isolation")
_GLOBAL: Final = ("global.", "persist.")
_SWITCHES: Final = {"ON": 1, "TRUE": 1, "OFF": 0, "FALSE": 0}
_DEFAULTS: Final[dict[str, Value]] = {
    "autocommit": 1,
    "auto_increment_increment": 1,
    "auto_increment_offset": 1,
    "binlog_direct_non_transactional_updates": 0,
    "foreign_key_checks": 1,
    "sql_auto_is_null": 0,
    "sql_log_bin": 1,
    "unique_checks": 1,
    "default_storage_engine": Text("InnoDB", _COLLATION),
}
_SQL_MODES: Final = {
    True: "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,"
    "NO_ENGINE_SUBSTITUTION",
    False: "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
}
"""By whether the server is MariaDB."""


def system_value(variables: Variables, name: str) -> Value:
    """The value of `@@name`; `name` in lower case, with its scope if one is given."""
    plain_name = name.rpartition(".")[2]
    is_global = name.startswith(_GLOBAL)
    if plain_name == "binlog_format":
        mode = variables.global_logging_mode if is_global else variables.logging_mode
        return Text(mode.value, _COLLATION)
    if plain_name in _ISOLATION_NAMES:
        text = _text(variables, "tx_isolation", is_global=is_global)
        return Text(text or "REPEATABLE-READ", _COLLATION)
    text = _text(variables, plain_name, is_global=is_global)
    if text.isdigit():
        return int(text)
    if text in _SWITCHES:
        return _SWITCHES[text]
    if text:
        return Text(text, _COLLATION)
    if plain_name == "sql_mode":
        return Text(_SQL_MODES[variables.server.is_mariadb], _COLLATION)
    return _DEFAULTS.get(plain_name, UNKNOWN)


def _text(variables: Variables, name: str, *, is_global: bool) -> str:
    return variables.global_values.get(name, "") if is_global else variables.text(name)


def with_value(
    assignment: Assignment, facts: StatementFacts, host: Host, environment: Environment | None
) -> Assignment:
    """An assignment whose expression is replaced by its value; a literal or word stays.

    A value that only a server knows stands for the default: scripts keep a variable's value in
    another one to set it back at their end.
    """
    node = assignment.node
    if assignment.name.startswith("@") or node is None or isinstance(node, Literal):
        return assignment
    known = SessionEnvironment(host) if environment is None else environment
    if isinstance(node, Name):
        try:
            value = known.local(".".join(node.parts))
        except LookupError:
            return assignment
    else:
        value = evaluate(node, facts, known)
    if value is UNKNOWN or value is None:
        return replace(assignment, value="DEFAULT")
    return replace(assignment, value=plain_text(value))
