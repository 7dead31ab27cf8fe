"""Lists of wanted tables, as users write them."""

from __future__ import annotations

from binlane.errors import ConfigError
from binlane.statements.scope.directives import filter_scope
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.scope import Scope
from binlane.statements.scope.statements import CreateBinlog
from binlane.tables.columnar.selection import parse_tables


def read_scope(text: str, name: str = "tables") -> Scope:
    """Read `shop.orders, crm`, or the lists of CREATE BINLOG: `LOG(shop), IGNORE(shop.secret)`.

    Raises:
        ConfigError: If it is neither.
        StatementError: If the lists are malformed.
    """
    if text.lstrip().upper().startswith(("LOG", "IGNORE")) and "(" in text:
        statement = parse_binlog_statement(f"CREATE BINLOG x {text}")
        if isinstance(statement, CreateBinlog):
            return filter_scope(statement.directives)
        raise ConfigError(f"{text!r} holds no LOG or IGNORE list", key=name)
    return parse_tables([part for part in text.split(",") if part.strip()])
