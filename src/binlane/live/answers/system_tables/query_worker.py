"""The process that answers one question over copies of the system tables, with SQLite.

Run as a program: it reads a JSON object from its standard input and writes one to its standard
output. It imports nothing of binlane, so that it starts fast. What it may use is limited before it
looks at the question; whoever started it kills it where that is not enough.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import re
import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cmp_to_key
from itertools import islice
from typing import Any, Final

Value = str | int | float | bytes | None

_NICE: Final = 10
_ALLOWED: Final = frozenset(
    (
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    )
)
_TYPES: Final = {int: "integer", float: "real", str: "text", bytes: "blob"}
_AFFINITIES: Final = {"int": "integer", "real": "real", "num": "integer", "blob": "text"}


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)
    _limit(question)
    try:
        answer = _answer(question)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        answer = {"error": str(error)}
    except (MemoryError, RecursionError) as error:
        answer = {"limit": "memory" if isinstance(error, MemoryError) else "depth"}
    json.dump(answer, sys.stdout)


def _limit(question: dict[str, Any]) -> None:
    for what, most in (
        (resource.RLIMIT_AS, question["memory_bytes"]),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))
    # The first is told by a signal of its own, which the second would not be.
    resource.setrlimit(resource.RLIMIT_CPU, (question["cpu_s"], question["cpu_s"] + 1))
    # Capturing and routing go first.
    os.nice(_NICE)


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, question["length_max"])
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"ATTACH ':memory:' AS {question['database']}")
    for name, table in question["tables"].items():
        columns = ", ".join(
            f'"{column}" {"INTEGER" if "int" in type_ else "TEXT"}'
            for column, type_ in table["columns"]
        )
        connection.execute(f'CREATE TABLE {question["database"]}."{name}" ({columns})')
        marks = ", ".join("?" * len(table["columns"]))
        connection.executemany(
            f'INSERT INTO {question["database"]}."{name}" VALUES ({marks})',  # noqa: S608 our own names
            table["rows"],
        )
    _add_functions(connection, question)
    # A view is one SELECT and nothing else, and knows the types of columns without rows.
    connection.execute(f"CREATE TEMP VIEW question AS {question['sql']}")
    declared = [row[2] for row in connection.execute("PRAGMA temp.table_info(question)")]
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else 1)
    cursor = connection.execute(question["sql"])
    rows = list(islice(_rows(cursor, question["bytes_max"]), question["rows_max"] + 1))
    if len(rows) > question["rows_max"]:
        return {"limit": f"{question['rows_max']} rows"}
    heads = [column[0] for column in cursor.description]
    types = [
        _type(values, each) for values, each in zip(_columns(rows, heads), declared, strict=True)
    ]
    return {
        "columns": [list(pair) for pair in zip(heads, types, strict=True)],
        "rows": [[_as_json(value) for value in row] for row in rows],
    }


def _rows(cursor: Iterable[tuple[Value, ...]], bytes_max: int) -> Iterator[tuple[Value, ...]]:
    total = 0
    for row in cursor:
        total += sum(len(value) for value in row if isinstance(value, (str, bytes))) + 8 * len(row)
        if total > bytes_max:
            raise MemoryError
        yield row


def _columns(rows: list[tuple[Value, ...]], heads: list[str]) -> list[list[Value]]:
    return [[row[number] for row in rows] for number in range(len(heads))]


def _type(values: list[Value], declared: str) -> str:
    """Return a column's type by its values; without any, by its declaration."""
    found = {_TYPES[type(value)] for value in values if value is not None}
    if not found:
        declared = declared.lower()
        is_integer = "int" in declared
        return "integer" if is_integer else _AFFINITIES.get(declared, "text")
    if found == {"integer", "real"}:
        return "real"
    return found.pop() if len(found) == 1 else "text"


def _as_json(value: Value) -> Any:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _add_functions(connection: sqlite3.Connection, question: dict[str, Any]) -> None:
    constants = {
        **dict.fromkeys(("database", "schema"), question["default_database"] or None),
        **dict.fromkeys(("user", "session_user", "system_user"), question["user"]),
        "version": question["version"],
        **dict.fromkeys(("now", "sysdate", "utc_timestamp"), _time(time.time())),
    }
    for name, value in constants.items():
        connection.create_function(name, 0, lambda value=value: value)
    for name, (count, function) in _FUNCTIONS.items():
        connection.create_function(name, count, _strict(function), deterministic=True)
    connection.create_function("concat_ws", -1, _concat_ws, deterministic=True)
    connection.create_function("if", 3, lambda test, yes, no: yes if test else no)
    connection.create_function("unix_timestamp", -1, _unix_timestamp)
    connection.create_aggregate("group_concat_of", -1, GroupConcat)  # type: ignore[arg-type]  # typeshed knows integers alone


def _strict(function: Callable[..., Value]) -> Callable[..., Value]:
    """Make a function give NULL if one of its arguments is NULL."""

    def call(*arguments: Value) -> Value:
        return None if None in arguments else function(*arguments)

    return call


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _concat(*values: Value) -> str:
    return "".join(map(_text, values))


def _concat_ws(separator: Value, *values: Value) -> Value:
    if separator is None:
        return None
    return _text(separator).join(_text(value) for value in values if value is not None)


def _like(pattern: Value, value: Value) -> bool:
    r"""LIKE, where `\` escapes."""
    parts = re.findall(r"\\.|.", _text(pattern), re.DOTALL)
    wanted = "".join({"%": ".*", "_": "."}.get(part, re.escape(part[-1])) for part in parts)
    return re.fullmatch(wanted, _text(value), re.DOTALL | re.IGNORECASE) is not None


def _substring_index(value: Value, delimiter: Value, count: Value) -> str:
    parts, number = _text(value).split(_text(delimiter)), int(count or 0)
    kept = parts[:number] if number >= 0 else parts[number:]
    return _text(delimiter).join(kept)


def _find_in_set(value: Value, values: Value) -> int:
    members = _text(values).split(",")
    return members.index(_text(value)) + 1 if _text(value) in members else 0


def _time(seconds: float) -> str:
    moment = dt.datetime.fromtimestamp(int(seconds), dt.UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def _unix_timestamp(*values: Value) -> Value:
    if not values:
        return int(time.time())
    if values[0] is None:
        return None
    moment = dt.datetime.fromisoformat(_text(values[0])).replace(tzinfo=dt.UTC)
    return int(moment.timestamp())


def _extreme(choose: Callable[..., Value]) -> Callable[..., Value]:
    def call(*values: Value) -> Value:
        if all(isinstance(value, (int, float)) for value in values):
            return choose(values)
        return choose(map(_text, values))

    return call


_FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Value]]]] = {
    "concat": (-1, _concat),
    "like": (2, _like),
    "regexp": (
        2,
        lambda pattern, value: bool(re.search(_text(pattern), _text(value), re.IGNORECASE)),
    ),
    "left": (2, lambda value, count: _text(value)[: max(0, int(count))]),
    "right": (2, lambda value, count: _text(value)[-int(count) :] if int(count) > 0 else ""),
    "lcase": (1, lambda value: _text(value).lower()),
    "ucase": (1, lambda value: _text(value).upper()),
    "length": (1, lambda value: len(_text(value).encode())),
    "octet_length": (1, lambda value: len(_text(value).encode())),
    "char_length": (1, lambda value: len(_text(value))),
    "character_length": (1, lambda value: len(_text(value))),
    "locate": (2, lambda part, value: _text(value).lower().find(_text(part).lower()) + 1),
    "reverse": (1, lambda value: _text(value)[::-1]),
    "mid": (3, lambda value, start, count: _text(value)[int(start) - 1 :][: int(count)]),
    "substring_index": (3, _substring_index),
    "find_in_set": (2, _find_in_set),
    "lpad": (3, lambda value, n, pad: _text(value)[: int(n)].rjust(int(n), _text(pad)[:1] or " ")),
    "rpad": (3, lambda value, n, pad: _text(value)[: int(n)].ljust(int(n), _text(pad)[:1] or " ")),
    "md5": (1, lambda value: hashlib.md5(_text(value).encode(), usedforsecurity=False).hexdigest()),
    "sha1": (
        1,
        lambda value: hashlib.sha1(_text(value).encode(), usedforsecurity=False).hexdigest(),
    ),
    "mod": (2, lambda one, other: one % other if other else None),
    "isnull": (1, lambda value: value is None),
    "from_unixtime": (1, lambda value: _time(float(value))),
    "greatest": (-1, _extreme(max)),
    "least": (-1, _extreme(min)),
}
"""Functions that the servers have and SQLite lacks, or has otherwise: number of arguments, and code."""


class GroupConcat:
    """GROUP_CONCAT with DISTINCT, ORDER BY and SEPARATOR."""

    def __init__(self) -> None:
        self._flags = ""
        self._separator = ","
        self._rows: list[tuple[Value, ...]] = []

    def step(self, *arguments: Value) -> None:
        """Take a row: flags, separator, value and the keys to sort by.

        Flags begin with `d` for DISTINCT, and then have `<` or `>` for each key.
        """
        flags, separator, value, *keys = arguments
        self._flags, self._separator = _text(flags), _text(separator)
        if value is not None:
            self._rows.append((_text(value), *keys))

    def finalize(self) -> str | None:
        """The values, sorted and put together."""
        if not self._rows:
            return None
        rows = sorted(self._rows, key=cmp_to_key(self._compare)) if self._flags[1:] else self._rows
        values = [str(row[0]) for row in rows]
        return self._separator.join(dict.fromkeys(values) if self._flags[0] == "d" else values)

    def _compare(self, one: tuple[Value, ...], other: tuple[Value, ...]) -> int:
        for direction, left, right in zip(self._flags[1:], one[1:], other[1:], strict=True):
            keys = _sort_key(left), _sort_key(right)
            if keys[0] != keys[1]:
                is_less = keys[0] < keys[1]
                return -1 if is_less is (direction == ">") else 1
        return 0


def _sort_key(value: Value) -> tuple[int, float, str]:
    if value is None:
        return 0, 0.0, ""
    if isinstance(value, (int, float)):
        return 1, float(value), ""
    return 2, 0.0, _text(value)


if __name__ == "__main__":
    main()
