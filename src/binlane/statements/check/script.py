r"""A script's statements as a server gets them, with the results that its comments state.

Bytes go in and statements come out one by one, so that a large file can be a memory map. Scripts that a
script reads with `source` or `\.` are read in their place. A line that cannot be followed, such as a
directive or a client command, becomes the statement's `problem`, so that the statement is never taken for
safe.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from binlane.errors import StoreError
from binlane.statements.check.script_directives import Directives, read_directive
from binlane.statements.policy.refusals import Outcome
from binlane.statements.session.report import Unanalysed
from binlane.statements.sql.script import BOM, Part, Script, ScriptReader, decoded
from binlane.statements.sql.servers import Dialect

_DEPTH_MAX: Final = 50
_REFUSED: Final = {
    "system": "the client's SYSTEM runs a program; what that does is not known",
    "connect": "the client's CONNECT goes to a server; state a new session with -- @disconnect",
    "edit": "the client's EDIT waits for an editor",
    "resetconnection": "the client's RESETCONNECTION is not followed; say -- @disconnect",
}
_UNFOLLOWED: Final = (
    "the client's SOURCE reads another script, which is not followed; name it itself"
)
_NO_DIRECTIVES: Final = Directives()


_RAN: Final = Outcome()


class ScriptStatement(NamedTuple):
    """One statement of a script.

    Attributes:
        number: Number of the statement, from 1. DELIMITER lines, comments and client commands do not count.
        line: Line of the statement's first token, from 1.
        column: Column of the statement's first character in that line, from 1.
        sql: The statement's text without its delimiter and the comments before it; bytes that are not UTF-8
            stand as lone surrogates. Empty for the end of a script after its last statement.
        script: The path of the statement's script, if another script reads that with SOURCE.
        outcome: Result of the statement's execution that the script states.
        is_disconnect: The session ends before this statement, which begins a new one.
        follows: The statement was sent in one text with the one before it, and runs only if that one
            succeeds.
        is_chunk: The text may have several statements, since its delimiter is another than `;`.
        problem: Why the script cannot be followed here; the statement is not to be run then.
    """

    number: int
    line: int
    column: int
    sql: str
    script: str = ""
    outcome: Outcome = _RAN
    is_disconnect: bool = False
    follows: bool = False
    is_chunk: bool = False
    problem: Unanalysed | None = None


def read_script(
    text: str | Script,
    *,
    dialect: Callable[[], Dialect] = Dialect,
    path: str = "",
    source: Callable[[str], Script] | None = None,
    first_end: Callable[[str], int | None] | None = None,
) -> Iterator[ScriptStatement]:
    """Read the statements of a script.

    Args:
        text: The script: characters, or its bytes in UTF-8.
        dialect: Called before each statement; gives the client's dialect and the session's quotes.
        path: Path of the script, from which scripts that it reads with SOURCE are looked for.
        source: Gives the bytes of a script read with SOURCE; raises StoreError if it cannot be read.
        first_end: Called for a text with another delimiter than `;` and a `;` in it; returns the position of
            the `;` that ends the first of several statements. None: the whole text is one statement.

    Yields:
        The script's statements in order. A `-- @disconnect` behind the last one gives a statement without
        text.
    """
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    yield from _Reader(dialect, source, first_end).statements(data, (path,))


class _Reader:
    """The state of reading, over all scripts that are read as one."""

    def __init__(
        self,
        dialect: Callable[[], Dialect],
        source: Callable[[str], Script] | None,
        first_end: Callable[[str], int | None] | None,
    ) -> None:
        self._dialect = dialect
        self._source = source
        self._first_end = first_end
        self._number = 0
        self._directives = _NO_DIRECTIVES
        self._delimiter = b";"

    def statements(self, data: Script, paths: tuple[str, ...]) -> Iterator[ScriptStatement]:
        """The statements of a script, the last of those that read one another."""
        place = _Place(data)
        path = paths[-1] if len(paths) > 1 else ""
        reader = ScriptReader(data, self._dialect, delimiter=self._delimiter)
        for part in reader.parts():
            for offset, comment in part.comments:
                self._directives = read_directive(
                    decoded(comment), self._directives, is_alone=place.begins_line(offset)
                )
            if part.command == b"source":
                self._delimiter = reader.delimiter
                yield from self._sourced(place, part, paths)
                reader.delimiter = self._delimiter
            else:
                yield from self._part(place, part, path)
        self._delimiter = reader.delimiter

    def _part(self, place: _Place, part: Part, path: str) -> Iterator[ScriptStatement]:
        if not part.command:
            if part.is_chunk and b";" in part.text and self._first_end is not None:
                yield from self._chunk(self._statement(place, part, decoded(part.text), path))
            elif part.text or self._directives.is_disconnect:
                yield self._statement(place, part, decoded(part.text), path)
        elif part.command == b"use":
            yield self._statement(place, part, f"USE {decoded(part.value)}", path)
        elif part.command == b"charset":
            yield self._statement(place, part, f"SET NAMES {decoded(part.value)}", path)
        elif reason := _REFUSED.get(part.command.decode()):
            yield self._unfollowed(place, part, path, reason)

    def _sourced(
        self, place: _Place, part: Part, paths: tuple[str, ...]
    ) -> Iterator[ScriptStatement]:
        inner = self._opened(decoded(part.value), paths)
        if isinstance(inner, str):
            yield self._unfollowed(place, part, paths[-1] if len(paths) > 1 else "", inner)
        else:
            yield from self.statements(*inner)

    def _chunk(self, whole: ScriptStatement) -> Iterator[ScriptStatement]:
        """The statements of one text, each asked for when the one before it has been run."""
        assert self._first_end is not None, "asked by the caller"
        sql, start = whole.sql, 0
        is_first = True
        while True:
            end = self._first_end(sql[start:])
            yield whole._replace(
                number=self._number,
                line=whole.line + sql.count("\n", 0, start),
                column=_column(sql, start, whole.column),
                sql=(sql[start:] if end is None else sql[start : start + end]).rstrip(),
                follows=not is_first,
                **({} if is_first else self._stated()),
            )
            if end is None:
                return
            behind = sql[start + end + 1 :].encode("utf-8", "surrogateescape")
            rest = ScriptReader(behind, self._dialect, delimiter=b"\0").rest()
            if not rest.text:
                return
            start += end + 1 + len(behind[: rest.start].decode("utf-8", "surrogateescape"))
            for _, comment in rest.comments:
                self._directives = read_directive(decoded(comment), self._directives, is_alone=True)
            self._number += 1
            is_first = False

    def _stated(self) -> dict[str, Any]:
        """Return the directives of the comments before a statement, as the statement's attributes."""
        directives, self._directives = self._directives, _NO_DIRECTIVES
        return {
            "outcome": directives.outcome,
            "is_disconnect": directives.is_disconnect,
            "problem": directives.problem,
        }

    def _opened(self, name: str, paths: tuple[str, ...]) -> tuple[Script, tuple[str, ...]] | str:
        """A script that the last of some reads; a sentence, if it cannot be read."""
        if self._source is None:
            return _UNFOLLOWED
        folder = posixpath.dirname(paths[-1])
        path = posixpath.normpath(posixpath.join(folder, name))
        if path in paths:
            return f"SOURCE reads {path}, which is being read: that has no end"
        if len(paths) > _DEPTH_MAX:
            return f"scripts read each other more than {_DEPTH_MAX} deep here"
        try:
            return self._source(path), (*paths, path)
        except StoreError as error:
            return f"SOURCE looks for {path}: {error.message}"

    def _unfollowed(self, place: _Place, part: Part, path: str, reason: str) -> ScriptStatement:
        text = decoded(part.text)
        problem = Unanalysed(reason=reason, offset=0, length=len(text))
        return self._statement(place, part, text, path)._replace(problem=problem)

    def _statement(self, place: _Place, part: Part, sql: str, path: str) -> ScriptStatement:
        self._number += 1
        # Blanks before it are no part of it.
        line, column = place.at(part.start + len(part.text) - len(part.text.lstrip()))
        statement = ScriptStatement(self._number, line, column, sql, path)
        if part.is_chunk or self._directives is not _NO_DIRECTIVES:
            return statement._replace(is_chunk=part.is_chunk, **self._stated())
        return statement


def _column(text: str, offset: int, first: int) -> int:
    """The column of a place in a statement whose first character has a column."""
    line_start = text.rfind("\n", 0, offset)
    return first + offset if line_start < 0 else offset - line_start


class _Place:
    """Lines and columns of a script, asked for in the order of its text."""

    def __init__(self, data: Script) -> None:
        self._data = data
        self._line = 1
        self._counted = self._line_start = len(BOM) if data[: len(BOM)] == BOM else 0

    def at(self, start: int) -> tuple[int, int]:
        """The line and the column, in characters, of a byte."""
        lines = self._data[self._counted : start]
        if newlines := lines.count(b"\n"):
            self._line += newlines
            self._line_start = self._counted + lines.rindex(b"\n") + 1
        self._counted = start
        before = self._data[self._line_start : start]
        return self._line, len(before.decode("utf-8", "surrogateescape")) + 1

    def begins_line(self, offset: int) -> bool:
        """True if nothing but white space stands before a place in its line."""
        begin = self._data.rfind(b"\n", 0, offset) + 1
        return not self._data[begin:offset].removeprefix(BOM).strip()
