"""The terms of a filter, and their writing: the same for every command and reader."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from binlane.binlogs.filters.kinds import RowKind, parse_kinds
from binlane.binlogs.filters.rules import TableRules, WildTable
from binlane.errors import ConfigError
from binlane.names import TableName, quote
from binlane.statements.sql.statement_kinds import StatementKind

LIST_OPTIONS: Final = (
    *("do_table", "ignore_table", "do_db", "ignore_db"),
    *("wild_do_table", "wild_ignore_table"),
)
"""Options that take names, each any number of them."""


class RenameMode(Enum):
    """Rule for tables that have been renamed."""

    FOLLOW = "follow"
    """The same table: the rules on its old name hold for the new one as well."""
    NAME = "name"
    """Another one: only names count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterTerms:
    """The changes that a filter lets through; by default all.

    Attributes:
        rules: Databases and tables that are wanted or not.
        rename: Rule for tables that have been renamed.
        statements: Kinds of statements; all if empty.
        rows: Kinds of row changes; all if both are empty.
        keeps_empty_groups: True if an event group with no change left stays as an empty one.
    """

    rules: TableRules = field(default_factory=TableRules)
    rename: RenameMode = RenameMode.FOLLOW
    statements: frozenset[StatementKind] = frozenset()
    rows: frozenset[RowKind] = frozenset()
    keeps_empty_groups: bool = False

    @property
    def text(self) -> str:
        """All of it, as a text that is equal for equal terms; empty if nothing is left out."""
        if self.is_everything:
            return ""
        rules = self.rules
        lists = {
            "do_table": [*map(str, rules.do_tables), *map(quote, rules.do_names)],
            "ignore_table": [*map(str, rules.ignore_tables), *map(quote, rules.ignore_names)],
            "do_db": rules.do_databases,
            "ignore_db": rules.ignore_databases,
            "wild_do_table": [pattern.text for pattern in rules.wild_do],
            "wild_ignore_table": [pattern.text for pattern in rules.wild_ignore],
            "do_event": [kind.value for kind in self.statements],
        }
        told: dict[str, object] = {name: sorted(names) for name, names in lists.items() if names}
        told["rename"] = self.rename.value
        if self.keeps_empty_groups:
            told["keep_empty_groups"] = True
        return json.dumps(told, ensure_ascii=False)

    @property
    def is_everything(self) -> bool:
        """True if nothing is left out."""
        return self.rules.is_everything and not self.has_kinds

    @property
    def has_kinds(self) -> bool:
        """True if kinds of statements or row changes count, too."""
        return bool(self.statements or self.rows)

    @property
    def follows(self) -> bool:
        """True if the wanted tables depend on renames before."""
        return self.rename is RenameMode.FOLLOW and not self.rules.is_everything


def parse_terms(
    given: Mapping[str, Iterable[str]],
    *,
    rename: str = RenameMode.FOLLOW.value,
    kinds: Iterable[str] = (),
    keeps_empty_groups: bool = False,
) -> FilterTerms:
    """Read the terms that a user wrote.

    Args:
        given: Names by the options of `LIST_OPTIONS`, some of which may be missing.
        rename: A value of `RenameMode`: `follow` or `name`.
        kinds: Kinds of statements, each as `kinds.parse_kinds` takes them.
        keeps_empty_groups: True to keep event groups as empty ones, as in `FilterTerms`.

    Raises:
        ConfigError: If a name or kind is none; its key is the option.
    """
    lists = {option: tuple(given.get(option, ())) for option in LIST_OPTIONS}
    do_tables, do_names = _tables("do_table", lists)
    ignore_tables, ignore_names = _tables("ignore_table", lists)
    statements, rows = parse_kinds(kinds)
    try:
        mode = RenameMode(rename)
    except ValueError:
        raise ConfigError(
            f"there is no rename {rename}", key="rename", hint="write follow or name"
        ) from None
    return FilterTerms(
        rules=TableRules(
            do_databases=_databases("do_db", lists),
            ignore_databases=_databases("ignore_db", lists),
            do_tables=do_tables,
            do_names=do_names,
            ignore_tables=ignore_tables,
            ignore_names=ignore_names,
            wild_do=_patterns("wild_do_table", lists),
            wild_ignore=_patterns("wild_ignore_table", lists),
        ),
        rename=mode,
        statements=statements,
        rows=rows,
        keeps_empty_groups=keeps_empty_groups,
    )


def terms_of(text: str) -> FilterTerms | None:
    """The terms of `FilterTerms.text`, as a landing keeps them; None for an empty one."""
    if not text:
        return None
    told: dict[str, Any] = json.loads(text)
    return parse_terms(
        {option: told.get(option, ()) for option in LIST_OPTIONS},
        rename=told["rename"],
        kinds=told.get("do_event", ()),
        keeps_empty_groups=told.get("keep_empty_groups", False),
    )


_Lists = Mapping[str, tuple[str, ...]]


def _tables(option: str, lists: _Lists) -> tuple[frozenset[TableName], frozenset[str]]:
    """Tables with their database, and names of tables in any."""
    names = [_checked(option, text) for text in lists[option]]
    full = frozenset(TableName(*parts) for parts in names if len(parts) == 2)
    return full, frozenset(parts[0] for parts in names if len(parts) == 1)


def _databases(option: str, lists: _Lists) -> frozenset[str]:
    """Names as they are, as servers take them, or with backticks around them."""
    names = set[str]()
    for text in lists[option]:
        parts = name_parts(text)
        names.add(parts[0] if parts is not None and len(parts) == 1 else text.strip())
    if "" in names:
        raise ConfigError(f"{_typed(option)}: the name of the database is empty", key=option)
    return frozenset(names)


def _patterns(option: str, lists: _Lists) -> tuple[WildTable, ...]:
    try:
        return tuple(map(WildTable, lists[option]))
    except ValueError as error:
        raise ConfigError(f"{_typed(option)}: {error}", key=option) from None


def _checked(option: str, text: str) -> list[str]:
    parts = name_parts(text)
    if parts is None or len(parts) > 2:
        raise ConfigError(
            f"{_typed(option)}: {text!r} is no DATABASE.TABLE",
            key=option,
            hint="put backticks around a name with a dot or backtick in it",
        )
    return parts


def _typed(option: str) -> str:
    return "--" + option.replace("_", "-")


def name_parts(text: str) -> list[str] | None:
    """`database.table` → its parts, without the backticks around them; None if one is no name."""
    parts, at, text = list[str](), 0, text.strip()
    while True:
        end = at
        if text[at : at + 1] == "`":
            end = at + 1
            while end < len(text) and (text[end] != "`" or text[end : end + 2] == "``"):
                end += 2 if text[end] == "`" else 1
            part, end = text[at + 1 : end].replace("``", "`"), end + 1
        else:
            while end < len(text) and text[end] not in ".`":
                end += 1
            part = text[at:end]
        if not part or end > len(text) or text[end : end + 1] not in ("", "."):
            return None
        parts.append(part)
        if end == len(text):
            return parts
        at = end + 1


def read_names(text: str, name: str) -> tuple[str, ...]:
    """A list of names in one text: with commas between them, or as a JSON list.

    Raises:
        ConfigError: If it begins as a JSON list and is none.
    """
    if not text.lstrip().startswith("["):
        return tuple(part.strip() for part in _split(text) if part.strip())
    try:
        names = json.loads(text)
    except json.JSONDecodeError:
        names = None
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise ConfigError(f"{text!r} is no JSON list of names", key=name)
    return tuple(names)


def _split(text: str) -> list[str]:
    """Split at the commas outside of backticks."""
    parts, is_quoted = [""], False
    for sign in text:
        is_quoted ^= sign == "`"
        if sign == "," and not is_quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
