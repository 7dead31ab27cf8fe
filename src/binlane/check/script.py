r"""A script as the command-line clients take it, with what its comments state of what happened.

Bytes in, statements out, one by one, so that a large file can be a memory map. What a statement
means is not asked here; a directive or client command that cannot be followed becomes the
statement's `problem`, so that it is never taken for safe.

Source: client/mysql.cc of both servers, for DELIMITER, `\G` and the client's own commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from mmap import mmap
from typing import Final

from binlane.check.directives import Directives, read_directive
from binlane.session.report import Outcome, Unanalysed

Script = bytes | mmap

BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = re.compile(rb"[\s\x00]+")
_LINE_COMMENT: Final = re.compile(rb"(?:\#|--(?=\s|\Z))[^\n]*+")
# Executable comments and hints are code.
_BLOCK_COMMENT: Final = re.compile(rb"/\*(?!M?!|\+).*?\*/", re.DOTALL)
# What a comment or a DELIMITER line begins with; empty at the end.
_GAP_STARTS: Final = frozenset((b"#", b"-", b"/", b"d", b"D", b"\\"))
_DELIMITER: Final = re.compile(
    rb"(?:delimiter[ \t]+|\\d[ \t]*)([^\s'\"]+|'[^'\n]+'|\"[^\"\n]+\")[^\n]*+", re.IGNORECASE
)
_COMMAND: Final = re.compile(
    rb"(\\[^NgG\s]|[?]|[a-z_]++)(?:[ \t]++([^\n]*+)|\r?(?=\n|\Z))", re.IGNORECASE
)
_SHORT_COMMANDS: Final = {
    b"\\.": b"source",
    b"\\!": b"system",
    b"\\r": b"connect",
    b"\\e": b"edit",
    b"\\q": b"quit",
    b"\\u": b"use",
    b"\\c": b"charset",
    b"?": b"help",
    **dict.fromkeys(
        (*(b"\\p", b"\\s", b"\\h", b"\\?", b"\\#", b"\\t", b"\\T"), *(b"\\n", b"\\P", b"\\R")),
        b"print",
    ),
    **dict.fromkeys((b"\\W", b"\\w", b"\\x"), b"print"),
    b"\\C": b"charset",
}
_WITH_PARAMETER: Final = frozenset((b"source", b"use", b"charset", b"prompt", b"tee"))
# What only changes how the client talks.
_SILENT: Final = frozenset(
    (
        *(b"tee", b"notee", b"pager", b"nopager", b"print", b"rehash", b"status", b"warnings"),
        *(b"nowarning", b"prompt", b"help", b"clear", b"go", b"ego"),
    )
)
_QUIT: Final = frozenset((b"quit", b"exit"))
_REFUSED: Final = {
    b"source": "the client's SOURCE reads another script, which is not followed; name it itself",
    b"system": "the client's SYSTEM runs a program; what that does is not known",
    b"connect": "the client's CONNECT goes to a server; state a new session with -- @disconnect",
    b"edit": "the client's EDIT waits for an editor",
    b"resetconnection": "the client's RESETCONNECTION is not followed; say -- @disconnect",
}


_NO_DIRECTIVES: Final = Directives()
_COMMANDS: Final = frozenset((*_SILENT, *_QUIT, *_REFUSED, b"use", b"charset"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptStatement:
    """One statement of a script.

    Attributes:
        number: From 1. DELIMITER lines, comments and client commands do not count.
        line: Of its first token, from 1.
        column: Of its first character in that line, from 1.
        sql: Its text without its delimiter and the comments before it; bytes that are not UTF-8
            stand as lone surrogates. Empty for what ends a script after its last statement.
        outcome: What the script states to have happened.
        is_disconnect: The session ends before this statement, which begins a new one.
        problem: Why the script cannot be followed here; the statement is not to be run then.
    """

    number: int
    line: int
    column: int
    sql: str
    outcome: Outcome = field(default_factory=Outcome)
    is_disconnect: bool = False
    problem: Unanalysed | None = None


def read_script(
    text: str | Script, *, has_backslash_escapes: Callable[[], bool] = lambda: True
) -> Iterator[ScriptStatement]:
    """Read the statements of a script.

    Args:
        text: The script: characters, or its bytes in UTF-8.
        has_backslash_escapes: Asked before each statement: whether a backslash escapes in strings
            (sql_mode NO_BACKSLASH_ESCAPES is off).

    Yields:
        Its statements in order. A `-- @disconnect` behind the last one gives a statement without
        text.
    """
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return _Reader(data, has_backslash_escapes).statements()


class _Reader:
    """A place in a script, and what the lines before it said."""

    def __init__(self, data: Script, has_backslash_escapes: Callable[[], bool]) -> None:
        self._data = data
        self._has_backslash_escapes = has_backslash_escapes
        self._delimiter = b";"
        self._offset = len(BOM) if data[: len(BOM)] == BOM else 0
        self._line = 1
        self._counted = self._offset
        self._line_start = self._offset
        self._number = 0
        self._directives = _NO_DIRECTIVES

    def statements(self) -> Iterator[ScriptStatement]:
        data = self._data
        while True:
            start = self._skip_gap()
            if self._offset >= len(data):
                break
            if self._is_at_delimiter():
                # A statement of nothing, or of comments.
                self._offset += len(self._delimiter)
                continue
            if command := _COMMAND.match(data, self._offset):
                name = command[1].lower()
                name = _SHORT_COMMANDS.get(name, name)
                if self._is_command(name, command):
                    self._offset = command.end()
                    if name in _QUIT:
                        break
                    if name not in _SILENT:
                        yield self._command(name, command)
                    continue
            end = self._find_end()
            if sql := _decode(data[start:end]):
                yield self._statement(start, sql)
        if self._directives.is_disconnect:
            yield self._statement(self._offset, "")

    def _skip_gap(self) -> int:
        """Go to the next token.

        Returns:
            Where the statement begins: at a comment if one stands in the line of its first token.
        """
        data = self._data
        kept: int | None = None
        while True:
            offset = self._offset
            if found := _SPACE.match(data, offset):
                if b"\n" in found[0]:
                    kept = None
            elif (
                data[offset : offset + len(self._delimiter)] == self._delimiter
                or data[offset : offset + 1] not in _GAP_STARTS
            ):
                break
            elif found := _LINE_COMMENT.match(data, offset):
                kept = None
                self._read_comment(offset, found[0])
            elif found := _BLOCK_COMMENT.match(data, offset):
                kept = offset if kept is None else kept
            elif found := _DELIMITER.match(data, offset):
                self._delimiter = found[1].strip(b"'\"")
            else:
                break
            self._offset = found.end()
        return self._offset if kept is None else kept

    def _read_comment(self, offset: int, comment: bytes) -> None:
        if b"@" not in comment:
            return
        begin = self._data.rfind(b"\n", 0, offset) + 1
        before = bytes(self._data[begin:offset])
        self._directives = read_directive(
            _decode(comment), self._directives, is_alone=not before.removeprefix(BOM).strip()
        )

    def _is_at_delimiter(self) -> bool:
        return self._data[self._offset : self._offset + len(self._delimiter)] == self._delimiter

    def _is_command(self, name: bytes, command: re.Match[bytes]) -> bool:
        """Whether the client keeps this line for itself: it never does if the delimiter is in it."""
        if name not in _COMMANDS or (name in _WITH_PARAMETER and not _parameter(command)):
            return False
        return self._delimiter not in command[0] or name in (b"source", b"system")

    def _command(self, name: bytes, command: re.Match[bytes]) -> ScriptStatement:
        text, value = _decode(command[0]), _decode(_parameter(command))
        if name == b"use":
            text = f"USE {value}"
        elif name == b"charset":
            text = f"SET NAMES {value}"
        else:
            problem = Unanalysed(reason=_REFUSED[name], offset=0, length=len(text))
            return self._statement(command.start(), text, problem)
        return self._statement(command.start(), text)

    def _find_end(self) -> int:
        """Go behind the delimiter; where it stands, or the script's end."""
        search = _pieces(self._delimiter, self._has_backslash_escapes()).search
        offset = self._offset
        while found := search(self._data, offset):
            offset = found.end()
            if found.lastgroup == "DELIMITER":
                self._offset = offset
                return found.start()
        self._offset = len(self._data)
        return self._offset

    def _statement(
        self, start: int, sql: str, problem: Unanalysed | None = None
    ) -> ScriptStatement:
        directives, self._directives = self._directives, _NO_DIRECTIVES
        self._number += 1
        lines = bytes(self._data[self._counted : start])
        if newlines := lines.count(b"\n"):
            self._line += newlines
            self._line_start = self._counted + lines.rindex(b"\n") + 1
        self._counted = start
        return ScriptStatement(
            number=self._number,
            line=self._line,
            column=len(_text(self._data[self._line_start : start])) + 1,
            sql=sql,
            outcome=directives.outcome,
            is_disconnect=directives.is_disconnect,
            problem=problem or directives.problem,
        )


def _parameter(command: re.Match[bytes]) -> bytes:
    """What stands behind the name of a client command."""
    return (command[2] or b"").strip(b" \t\r")


def _decode(data: bytes) -> str:
    """Text without white space around it, line ends as the client sends them."""
    return _text(data).strip(" \t\n\v\f\r\0")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


@cache
def _pieces(delimiter: bytes, has_backslash_escapes: bool) -> re.Pattern[bytes]:  # noqa: FBT001  # of the cache's key
    """What may hold a delimiter that is none, and the delimiter itself."""
    escaped = rb"[^%s\\] | \\." if has_backslash_escapes else rb"[^%s]"
    return re.compile(
        rb"(?P<DELIMITER> %s | \\[gG] )" % re.escape(delimiter)
        + rb"| ' (?: %s )*+ (?:'|\Z)" % (escaped % b"'")
        + rb'| " (?: %s )*+ (?:"|\Z)' % (escaped % b'"')
        + rb"""
          | ` [^`]*+ (?:`|\Z)
          | /\*(?!M?!|\+) .*? (?:\*/|\Z)
          | (?: \# | --(?=\s|\Z) ) [^\n]*+
        """,
        re.VERBOSE | re.DOTALL,
    )
