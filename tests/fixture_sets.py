r"""Real binlogs of real servers, with what the servers themselves say about them.

Each set is one `tests/fixtures/<set>.tar.xz`; sets named `md1011_…` and `md118_…` come from
MariaDB 10.11.19 and 11.8.9, `my97_…` from MySQL 9.7.4; `corrupt_…` holds damaged variants of one of
them, `synth_…` is constructed. In a set:

- `script.sql`: the SQL that made it; `meta.json`: server, options, counts, sha256 of each file.
- `binlog.NNNNNN`, `binlog.index`: the files as the server wrote them.
- `events.tsv`: the server's SHOW BINLOG EVENTS.
- `rows.jsonl`: row changes as the server's own tool prints them with `-vv`.
- `final/DATABASE.TABLE.jsonl`: the tables' contents at the end, by SELECT.
- `expected.json` or `….expected.json`: what a reader must find (corrupt and synthetic sets).
- `binlog.NNNNNN.vv.txt`: what `mariadb-binlog` or `mysqlbinlog` of the same server prints with
  `--base64-output=decode-rows -vv --print-table-metadata`; `….auto.txt`: by default.
- `binlog.NNNNNN.decrypted`, `keys.txt`, `keyring` (encrypted sets): the same file in plain, and the
  keys.
"""

from __future__ import annotations

import json
import lzma
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, TypedDict

_FOLDER = Path(__file__).parent / "fixtures"
_BINLOG = re.compile(r"[^/]+\.\d{6}|[^/]+\.bin")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


class EventRow(TypedDict):
    """One line of SHOW BINLOG EVENTS; bytes of `info` that are not UTF-8 are lone surrogates."""

    file: str
    pos: int
    type: str
    server_id: int
    end_log_pos: int
    info: str


@dataclass(frozen=True, slots=True)
class FinalTable:
    """A table at the end of a set's script.

    Attributes:
        columns: One mapping a column: name, type, charset, nullable, key, generated, ...
        rows: One list a row: text is `{"s", "hex"}` (bytes in the column's character set), binary
            `{"hex"}`, more than 2 KiB `{"len", "sha256"}`, ENUM and SET `{"s", "n"}`, BIT int,
            FLOAT and DOUBLE float, anything else a string, NULL None.
    """

    columns: list[dict[str, Any]]
    rows: list[list[Any]]


@dataclass(frozen=True, slots=True)
class FixtureSet:
    """One set, in memory.

    Attributes:
        name: Such as `md1011_txn`.
        files: Contents by path inside the set.
    """

    name: str
    files: Mapping[str, bytes]

    def __contains__(self, path: str) -> bool:
        return path in self.files

    @property
    def binlogs(self) -> list[tuple[str, bytes]]:
        """Name and bytes of each binlog file, in the order of the log."""
        return [(name, self.files[name]) for name in sorted(self.files) if _BINLOG.fullmatch(name)]

    @property
    def meta(self) -> dict[str, Any]:
        """`meta.json`."""
        meta: dict[str, Any] = self._json("meta.json")
        return meta

    @property
    def expected(self) -> Any:
        """`expected.json` (corrupt sets) or `….expected.json` (synthetic sets)."""
        (name,) = (name for name in self.files if name.endswith("expected.json"))
        return self._json(name)

    def text(self, path: str) -> str:
        """A text file of the set; bytes that are not UTF-8 become lone surrogates."""
        return self.files[path].decode("utf-8", "surrogateescape")

    def events(self) -> list[EventRow]:
        """The server's own list of events, over all files."""
        _, *lines = _lines(self.files["events.tsv"])
        return [_event_row(line) for line in lines]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Row changes in log order: `file`, `op` (I, U, D), `db`, `table`, `before`, `after`.

        The images map a column number, from "1", to the text printed, type comment included.
        """
        return map(json.loads, filter(None, _lines(self.files["rows.jsonl"])))

    def final_tables(self) -> list[str]:
        """Names of the tables that `final` knows, `database.table`."""
        return sorted(self._finals())

    def final(self, table: str) -> FinalTable:
        """The contents of `database.table` at the end."""
        return self._finals()[table]

    def _finals(self) -> dict[str, FinalTable]:
        tables = {}
        for name, data in self.files.items():
            if name.startswith("final/"):
                head, *rows = map(json.loads, _lines(data))
                tables[f"{head['db']}.{head['table']}"] = FinalTable(head["columns"], rows)
        return tables

    def _json(self, path: str) -> Any:
        return json.loads(self.files[path])


def _lines(data: bytes) -> list[str]:
    """Lines that end with LF only; str.splitlines would also cut at U+0085 and U+2028."""
    return data.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")


def _event_row(line: str) -> EventRow:
    file, pos, type_name, server_id, end_log_pos, info = line.split("\t")
    return EventRow(
        file=file,
        pos=int(pos),
        type=type_name,
        server_id=int(server_id),
        end_log_pos=int(end_log_pos),
        info=_ESCAPE.sub(_unescape, info),
    )


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 3:
        return bytes.fromhex(code[1:]).decode("utf-8", "surrogateescape")
    return _ESCAPED.get(code, code)


@cache
def fixture_set(name: str) -> FixtureSet:
    """Read a set; the result is shared, so leave it as it is."""
    packed = (_FOLDER / f"{name}.tar.xz").read_bytes()
    files = {}
    with tarfile.open(fileobj=BytesIO(lzma.decompress(packed))) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            assert stream is not None, f"{name}: {member.name} is no plain file"
            files[member.name] = stream.read()
    return FixtureSet(name, files)


def fixture_names(prefix: str = "") -> list[str]:
    """Names of the sets that begin with `prefix`."""
    return sorted(path.name.removesuffix(".tar.xz") for path in _FOLDER.glob(f"{prefix}*.tar.xz"))


def mariadb_sets() -> list[str]:
    """Names of the sets that real MariaDB servers made."""
    return fixture_names("md")


def mysql_sets() -> list[str]:
    """Names of the sets that real MySQL servers made."""
    return fixture_names("my")


def server_sets() -> list[str]:
    """Names of all sets that real servers made."""
    return mariadb_sets() + mysql_sets()
