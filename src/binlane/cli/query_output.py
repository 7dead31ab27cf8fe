"""Results of queries as text, JSON or Parquet: batch by batch, none held as a whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TextIO

from binlane.visible import visible

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FORMATS: Final = ("table", "csv", "json", "jsonl", "parquet")
_ROWS: Final = 1000
_NULL: Final = "NULL"
_PLAN: Final = ["explain_key", "explain_value"]
_NOT_JSON: Final[Mapping[str | None, str]] = {
    None: "null",
    "NaN": '"NaN"',
    "Infinity": '"Infinity"',
    "-Infinity": '"-Infinity"',
}
_NUMBER: Final = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?$|DECIMAL|FLOAT|DOUBLE")


def write_result(result: duckdb.DuckDBPyRelation, out: TextIO, form: str) -> int:
    """Write the rows of a result, and return how many there are.

    Args:
        result: The result, which is read while it is written.
        out: Stream that gets the text of the rows.
        form: One of `FORMATS` that are text.
    """
    if form == "table":
        is_plan = result.columns == _PLAN
        return _write_plan(result, out) if is_plan else _write_table(result, out)
    if form == "csv":
        return _write_csv(result, out)
    return _write_json(result, out, is_array=form == "json")


def _texts(result: duckdb.DuckDBPyRelation) -> Iterator[list[list[str | None]]]:
    """Give the rows as DuckDB's own texts of their values, some at a time."""
    for batch in _batches(result, "{}::VARCHAR"):
        columns = [column.to_pylist() for column in batch.columns]
        yield [list(row) for row in zip(*columns, strict=True)]


def _batches(result: duckdb.DuckDBPyRelation, form: str) -> Iterator[pa.RecordBatch]:
    # Behind a star no two names are the same.
    named = result.project("*")
    quoted = ['"' + name.replace('"', '""') + '"' for name in named.columns]
    shown = ", ".join(f"{form.format(name)} AS {name}" for name in quoted)
    yield from named.project(shown).to_arrow_reader(_ROWS)


def _write_csv(result: duckdb.DuckDBPyRelation, out: TextIO) -> int:
    """Write what RFC 4180 says, with plain line ends: NULL is empty, an empty text is quoted."""
    out.write(",".join(map(_field, result.columns)) + "\n")
    count = 0
    for rows in _texts(result):
        out.writelines(",".join(map(_field, row)) + "\n" for row in rows)
        count += len(rows)
    return count


def _field(value: str | None) -> str:
    if value is None:
        return ""
    if value == "" or any(character in value for character in ',"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


def _write_json(result: duckdb.DuckDBPyRelation, out: TextIO, *, is_array: bool) -> int:
    names = [json.dumps(name, ensure_ascii=False) for name in result.project("*").columns]
    count = 0
    if is_array:
        out.write("[")
    for batch in _batches(result, "to_json({})"):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if is_array:
                out.write(",\n" if count else "\n")
            values = (_NOT_JSON.get(value, value) for value in row)
            fields = ", ".join(map(": ".join, zip(names, values, strict=True)))
            out.write("{" + fields + "}" + ("" if is_array else "\n"))
            count += 1
    if is_array:
        out.write("\n]\n" if count else "]\n")
    return count


# Tables -------------------------------------------------------------------------------------------


def _write_table(result: duckdb.DuckDBPyRelation, out: TextIO) -> int:
    """Write rows under names, each column as wide as the first rows need it."""
    names = [visible(name) for name in result.columns]
    is_number = [_NUMBER.match(str(kind)) is not None for kind in result.types]
    rows = (
        [_NULL if value is None else visible(value) for value in row]
        for some in _texts(result)
        for row in some
    )
    first = list(islice(rows, _ROWS))
    widths = [max(map(len, column)) for column in zip(names, *first, strict=True)]
    out.write(_line(names, widths, [False] * len(names)))
    out.write("-+-".join("-" * width for width in widths) + "\n")
    count = 0
    for row in chain(first, rows):
        out.write(_line(row, widths, is_number))
        count += 1
    out.write(f"({count:,} {'row' if count == 1 else 'rows'})\n")
    return count


def _write_plan(result: duckdb.DuckDBPyRelation, out: TextIO) -> int:
    """Write what EXPLAIN draws, line by line."""
    count = 0
    for _, plan in (row for rows in _texts(result) for row in rows):
        out.writelines(visible(line) + "\n" for line in (plan or "").splitlines())
        count += 1
    return count


def _line(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, is_number, strict=True)
    )
    return " | ".join(padded).rstrip() + "\n"


def write_parquet(result: duckdb.DuckDBPyRelation, path: str) -> int:
    """Write a result as a Parquet file, which is there whole or not at all; return its rows.

    Args:
        result: The result, which is read while it is written.
        path: Path of the file to be made or replaced.

    Raises:
        OSError: If the file cannot be written.
    """
    import os  # noqa: PLC0415 - for this format only
    import tempfile  # noqa: PLC0415 - as above
    from pathlib import Path  # noqa: PLC0415 - as above

    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    target = Path(path)
    reader: Any = result.to_arrow_reader(100_000)
    number, made = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    count = 0
    try:
        with os.fdopen(number, "wb") as stream:
            with pq.ParquetWriter(stream, reader.schema, compression="zstd") as writer:
                for batch in reader:
                    writer.write_batch(batch)
                    count += batch.num_rows
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(made).chmod(0o666 & ~umask)
        Path(made).replace(target)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise
    return count
