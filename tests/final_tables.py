"""A server made equal to the end of a fixture set: emptied, filled, compared.

Everything goes through a command-line client, so that any server with one will do.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from binlane.names import TableName, quote
from tests.fixture_sets import FinalTable, FixtureSet

_SYSTEM: Final = "'mysql', 'sys', 'information_schema', 'performance_schema'"
_LONG: Final = 2048
_CHUNK: Final = 8
# Servers take none of their values as a string, but for HEX.
_GEOMETRY: Final = re.compile("geom|point|line|polygon")


@dataclass(frozen=True, slots=True)
class Client:
    """A client of a server that tests may empty.

    Attributes:
        command: The client with what it needs to log in.
        resets: Statements that make the server forget what it has applied.
    """

    command: Sequence[str]
    resets: str = ""

    def run(self, text: bytes) -> list[str]:
        """Run a text to its end; the error of each statement that failed."""
        done = subprocess.run(
            [*self.command, "--binary-mode", "--force", "--local-infile=1"],
            input=text,
            capture_output=True,
            check=False,
        )
        lines = done.stderr.decode(errors="replace").splitlines()
        return [line for line in lines if line.startswith("ERROR")]

    def rows(self, *statements: str) -> list[list[str]]:
        """The rows of statements, whose values have neither tabs nor line ends."""
        done = subprocess.run(
            [*self.command, "--batch", "--raw", "--skip-column-names"],
            input=";\n".join(statements).encode("utf-8", "surrogateescape"),
            capture_output=True,
            check=True,
        )
        return [line.split("\t") for line in done.stdout.decode().splitlines()]

    def empty(self, users: Sequence[str]) -> None:
        """Drop all databases, and all users but those given; forget what was applied."""
        where = f"SCHEMA_NAME NOT IN ({_SYSTEM})"
        name = "CONCAT('DROP DATABASE `', REPLACE(SCHEMA_NAME, '`', '``'), '`')"
        found = self.rows(f"SELECT {name} FROM information_schema.SCHEMATA WHERE {where}")
        dropped = [drop for (drop,) in found]
        dropped += [f"DROP USER {user}" for user in self.users() if user not in users]
        self.run(";\n".join(["SET sql_log_bin=0", *dropped, self.resets, ""]).encode())

    def users(self) -> list[str]:
        """All users and roles, quoted."""
        found = self.rows("SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.user")
        return [user.removesuffix("@''") for (user,) in found]

    def contents(self, table: TableName, final: FinalTable) -> Counter[str]:
        """The rows of a table in the form of `expected`."""
        expressions = [
            f"IF({name} IS NULL, 'N', {_expression(name, column_type, shape)})"
            for (name, column_type), shape in zip(_columns(final), _shapes(final), strict=True)
        ]
        parts = [
            "CONCAT_WS('|', " + ", ".join(expressions[start : start + _CHUNK]) + ")"
            for start in range(0, len(expressions), _CHUNK)
        ]
        return Counter(
            "|".join(_same_doubles("|".join(row)))
            for row in self.rows(
                "SET NAMES utf8mb4",
                "SET time_zone='+00:00'",
                f"SELECT {', '.join(parts)} FROM {table}",
            )
        )


def expected(final: FinalTable) -> Counter[str]:
    """The rows that a set says a table has at the end."""
    return Counter("|".join(map(_cell, row)) for row in final.rows)


def problems(client: Client, fixtures: FixtureSet) -> list[str]:
    """Tables whose rows differ from what the set says."""
    found = []
    for path, data in fixtures.files.items():
        if not path.startswith("final/"):
            continue
        head = json.loads(data.split(b"\n", 1)[0])
        final = fixtures.final(f"{head['db']}.{head['table']}")
        table = TableName(head["db"], head["table"])
        missing = expected(final)
        missing.subtract(client.contents(table, final))
        wrong = {row: count for row, count in missing.items() if count}
        if wrong:
            found.append(f"{table}: {json.dumps(wrong, ensure_ascii=False)[:500]}")
    return found


def _same_doubles(row: str) -> Iterator[str]:
    """Servers and Python write the exponents of the same double differently."""
    for cell in row.split("|"):
        yield f"d{float(cell[1:])}" if cell.startswith("d") else cell


def _columns(final: FinalTable) -> list[tuple[str, str]]:
    """Quoted name and type of each column; a sequence's have no types."""
    columns: Sequence[Any] = final.columns
    return [
        (quote(column), "") if isinstance(column, str) else (quote(column["name"]), column["type"])
        for column in columns
    ]


def _shapes(final: FinalTable) -> list[str]:
    """How each column's cells are written: by their bytes, by number, as text."""
    shapes = []
    for index in range(len(final.columns)):
        kinds = {_shape(row[index]) for row in final.rows if row[index] is not None}
        assert len(kinds) <= 1, kinds
        shapes.append(kinds.pop() if kinds else "text")
    return shapes


def _shape(cell: Any) -> str:
    if isinstance(cell, Mapping):
        return "member" if "n" in cell else "bytes"
    if isinstance(cell, float):
        return "double"
    return "integer" if isinstance(cell, int) else "text"


def _expression(column: str, column_type: str, shape: str) -> str:
    if _GEOMETRY.search(column_type):
        return f"CONCAT('x', HEX({column}))"
    if shape == "bytes":
        binary = f"CAST({column} AS BINARY)"
        long = f"CONCAT(LENGTH({column}), ':', SHA2({binary}, 256))"
        return f"IF(LENGTH({column}) > {_LONG}, {long}, CONCAT('x', HEX({binary})))"
    if shape == "double":
        # CONCAT alone would round some of MySQL's doubles.
        return f"CONCAT('d', JSON_EXTRACT(JSON_ARRAY({column} + 0e0), '$[0]'))"
    if column_type.startswith("vector"):
        return f"CONCAT('x', HEX(VECTOR_TO_STRING({column})))"
    if shape == "text":
        return f"CONCAT('x', HEX(CONVERT(CAST({column} AS CHAR) USING utf8mb4)))"
    # An addition would be one of doubles.
    return f"CONCAT('i', {column} | 0)"


def _cell(cell: Any) -> str:
    if cell is None:
        return "N"
    if isinstance(cell, Mapping):
        if "n" in cell:
            return f"i{cell['n']}"
        return f"{cell['len']}:{cell['sha256']}" if "sha256" in cell else _bytes_cell(cell)
    if isinstance(cell, str):
        return f"x{cell.encode().hex().upper()}"
    return f"d{cell}" if isinstance(cell, float) else f"i{cell}"


def _bytes_cell(cell: Mapping[str, str]) -> str:
    data = bytes.fromhex(cell["hex"])
    if len(data) > _LONG:
        return f"{len(data)}:{hashlib.sha256(data).hexdigest()}"
    return f"x{cell['hex'].upper()}"
