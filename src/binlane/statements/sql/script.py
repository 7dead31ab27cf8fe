r"""A script as the command-line clients take it → what they send, one text after the other.

Bytes in, so that a large file can be a memory map. DELIMITER and the client's other commands are
told from SQL here; what SQL means is not asked.

What is read is what both clients do in a batch, with their commands enabled: `-----` at the
beginning of a statement is a comment of MariaDB's client alone, a named command stands at the
beginning of a statement and in a line of its own, `\c`, `\p` and their like anywhere.

Source: measured, by the general logs of servers that clients of MariaDB 10.11 and MySQL 9.7 fed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from mmap import mmap
from typing import Final

from binlane.statements.sql.servers import Dialect

Script = bytes | mmap
BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = re.compile(rb"[\s\x00]+")
_LINE_COMMENT: Final = re.compile(rb"(?:\#|--(?=\s|\Z))[^\n]*+")
_DASHES: Final = re.compile(rb"--[^\n]*+")
# Executable comments and hints are code.
_BLOCK_COMMENT: Final = re.compile(rb"/\*(?!M?!|\+).*?\*/", re.DOTALL)
# First bytes of a comment or a DELIMITER line; empty at the end.
_GAP_STARTS: Final = frozenset((b"#", b"-", b"/", b"d", b"D", b"\\"))
_DELIMITER: Final = re.compile(
    rb"(?:delimiter[ \t]+|\\d[ \t]*)([^\s'\"]+|'[^'\n]+'|\"[^\"\n]+\")[^\n]*+", re.IGNORECASE
)
_SHORT: Final = {
    b"\\.": b"source",
    b"\\!": b"system",
    b"\\r": b"connect",
    b"\\e": b"edit",
    b"\\q": b"quit",
    b"\\u": b"use",
    b"\\C": b"charset",
    b"\\c": b"clear",
    b"?": b"help",
    **dict.fromkeys(
        (*(b"\\p", b"\\s", b"\\h", b"\\?", b"\\#", b"\\t", b"\\T", b"\\n", b"\\P", b"\\R"),),
        b"print",
    ),
    **dict.fromkeys((b"\\W", b"\\w", b"\\x", b"\\-"), b"print"),
}
"""Commands of one character: what they are called in full, or another that does as little."""
_TAKES_VALUE: Final = frozenset(
    (b"source", b"system", b"connect", b"use", b"charset", b"tee", b"pager", b"prompt", b"help")
)
_NEEDS_VALUE: Final = frozenset((b"source", b"use", b"charset", b"prompt", b"tee"))
_QUIT: Final = frozenset((b"quit", b"exit"))
_COMMANDS: Final = frozenset(
    (
        *(*_TAKES_VALUE, *_QUIT),
        *(b"edit", b"resetconnection", b"notee", b"nopager", b"print", b"rehash", b"status"),
        *(b"warnings", b"nowarning", b"clear", b"go", b"ego"),
    )
)
_AROUND: Final = b" \t\n\v\f\r\0"
_COMMAND: Final = re.compile(
    rb"(\\[^NgGd\s]|[?]|(?:%s)(?=\s|\Z))([^\n]*+)" % b"|".join(sorted(_COMMANDS)),
    re.IGNORECASE,
)


@dataclass(slots=True)
class Part:
    r"""A text that the client sends, or a command of its own.

    Attributes:
        start: Place where the part begins, in bytes.
        text: The whole text, without its delimiter and the lines of comments before it, and with
            blanks where the client took a command such as `\p` out of it. Empty at the end of a
            script for the comments that stand there.
        comments: Comments from `--` or `#` to the end of the line that stand before it and hold an
            `@`, with their places.
        command: The full name of a command, in small letters; empty for what is sent.
        value: Text behind the name of the command.
        is_chunk: True if it ended at another delimiter than `;`, so that it may be several
            statements.
    """

    start: int
    text: bytes
    comments: tuple[tuple[int, bytes], ...] = ()
    command: bytes = b""
    value: bytes = b""
    is_chunk: bool = False


def statements(text: str, dialect: Callable[[], Dialect] = Dialect) -> Iterator[str]:
    """The statements of a script that a tool wrote, such as a schema; none is empty.

    Of the client's own commands, DELIMITER and USE alone are followed. Comments stay where they
    stand. An unfinished comment or string goes to the end.

    Args:
        text: Text of the whole script.
        dialect: Gives the dialect, as for `ScriptReader`.
    """
    for part in ScriptReader(text.encode("utf-8", "surrogateescape"), dialect).parts():
        if part.command == b"use":
            yield f"USE {decoded(part.value)}"
        elif not part.command and (sql := decoded(part.text)):
            yield sql


class ScriptReader:
    """A place in a script.

    Args:
        data: Bytes of the whole script.
        dialect: Gives the dialect before each statement: the client's flavor, and the session's
            quotes.
        delimiter: Text that ends a statement at the script's beginning.

    Attributes:
        delimiter: Text that ends a statement at the present place.
    """

    def __init__(
        self, data: Script, dialect: Callable[[], Dialect], *, delimiter: bytes = b";"
    ) -> None:
        self.delimiter = delimiter
        self._data = data
        self._dialect = dialect
        self._offset = len(BOM) if data[: len(BOM)] == BOM else 0
        self._ended = 0  # behind the statement before
        self._comments: list[tuple[int, bytes]] = []
        self._plain_for: Dialect | None = None
        self._plain_match = _plain(Dialect()).match

    def parts(self) -> Iterator[Part]:
        """Yield all parts of the script in order. `quit` is the last one."""
        data = self._data
        while True:
            while plain := self._plain():
                yield plain
            start = self._skip_gap()
            if self._offset >= len(data):
                break
            if self._is_at_delimiter():
                # A statement of nothing, or of comments.
                self._offset += len(self.delimiter)
                self._ended = self._offset
                continue
            part = self._line_command() or self._text(start)
            self._ended = self._offset
            if self._comments:
                part.comments = tuple(self._comments)
                self._comments.clear()
            if part.text:
                yield part
            if part.command in _QUIT:
                return
        if self._comments:
            yield Part(self._offset, b"", tuple(self._comments))

    def rest(self) -> Part:
        """All that stands behind white space and comments here, whatever it is."""
        start = self._skip_gap()
        text = bytes(self._data[start:]) if self._offset < len(self._data) else b""
        return Part(start, text, tuple(self._comments))

    def _plain(self) -> Part | None:
        """Skip a plain statement; None if the statement is not plain."""
        dialect = self._dialect()
        if dialect is not self._plain_for:
            self._plain_for = dialect
            self._plain_match = _plain(dialect).match
        if self.delimiter != b";" or self._comments:
            return None
        found = self._plain_match(self._data, self._offset)
        if found is None:
            return None
        self._offset = self._ended = found.end()
        return Part(found.start(1), found[1])

    def _skip_gap(self) -> int:
        """Go to the next token.

        Returns:
            The place where the statement begins: at a comment if one stands in the line of its
            first token.
        """
        data = self._data
        kept: int | None = None
        while True:
            offset = self._offset
            if found := _SPACE.match(data, offset):
                if b"\n" in found[0]:
                    kept = None
            elif data[offset : offset + 1] not in _GAP_STARTS or self._is_at_delimiter():
                break
            elif (found := _LINE_COMMENT.match(data, offset)) or (
                found := self._line_of_dashes(offset)
            ):
                kept = None
                if b"@" in found[0]:
                    self._comments.append((offset, found[0]))
            elif found := _BLOCK_COMMENT.match(data, offset):
                kept = offset if kept is None else kept
            elif (found := _DELIMITER.match(data, offset)) and self._begins_line():
                self.delimiter = found[1].strip(b"'\"")
            else:
                break
            self._offset = found.end()
        return self._offset if kept is None else kept

    def _line_of_dashes(self, offset: int) -> re.Match[bytes] | None:
        """`-----` at the beginning of a line, which MariaDB's client takes for a comment."""
        found = _DASHES.match(self._data, offset)
        is_comment = found and self._dialect().may_be_mariadb and self._begins_line()
        return found if is_comment else None

    def _is_at_delimiter(self) -> bool:
        return self._data[self._offset : self._offset + len(self.delimiter)] == self.delimiter

    def _begins_line(self) -> bool:
        """True if no statement stands before this place in its line."""
        ended = self._ended
        return ended == 0 or self._data.find(b"\n", ended, self._offset) >= 0

    def _line_command(self) -> Part | None:
        """A command that has its line for itself, without a delimiter in it."""
        found = _COMMAND.match(self._data, self._offset)
        if found is None:
            return None
        name = _SHORT.get(found[1], found[1].lower())
        is_short = found[0].startswith(b"\\")
        if name not in _COMMANDS or not (is_short or self._begins_line()):
            return None
        if not is_short and (self.delimiter in found[0] or b"\\g" in found[0]):
            return None  # it is known when it ends
        value = found[2].strip(b" \t\r")
        if name in _NEEDS_VALUE and not value:
            return None
        start, self._offset = self._offset, found.end()
        if is_short and name not in _TAKES_VALUE:
            self._offset = found.end(1)
        return Part(start, found[0], command=name, value=value)

    def _text(self, start: int) -> Part:
        """Go behind the delimiter: what is sent, or the command that it turns out to be."""
        data = self._data
        search = _pieces(self.delimiter, self._dialect()).search
        removed: list[tuple[int, int]] = []
        begin = start
        while found := search(data, self._offset):
            self._offset = found.end()
            kind = found.lastgroup
            if kind == "DELIMITER":
                end = found.start()
                break
            if kind == "CLEAR":
                begin = found.end()
                removed.clear()
            elif kind == "COMMAND":
                removed.append(found.span())
        else:
            end = self._offset = len(data)
        text = bytes(data[begin:end])
        for first, last in removed:
            text = text[: first - begin] + b" " * (last - first) + text[last - begin :]
        if begin == start and (command := self._ended_command(begin, text)):
            return command
        return Part(begin, text.strip(_AROUND) and text, is_chunk=self.delimiter != b";")

    def _ended_command(self, start: int, text: bytes) -> Part | None:
        """A command that ends at a delimiter, in one line."""
        found = _COMMAND.match(text)
        if found is None or b"\n" in text.strip(_AROUND):
            return None
        name = _SHORT.get(found[1], found[1].lower())
        value = found[2].strip(b" \t\r")
        if (
            name not in _COMMANDS
            or name == b"use"  # SQL too
            or (value and name not in _TAKES_VALUE)
            or (not value and name in _NEEDS_VALUE)
        ):
            return None
        return Part(start, text, command=name, value=value)


@cache
def _plain(dialect: Dialect) -> re.Pattern[bytes]:
    """A statement up to its `;` that holds no comment and is no command of the client."""
    single, double = _strings(dialect)
    return re.compile(
        rb"""
        [\s\0]*+ (?! [;?#/\\-] | (?i:delimiter|%s)(?![0-9A-Za-z_$]) )
        ( (?: [^'"`\\;#/-]++ | (?!--)- | (?!/\*)/
            | ' (?: %s | (?!) )*+ (?:'|\Z) | " (?: %s | (?!) )*+ (?:"|\Z) | ` [^`]*+ (?:`|\Z)
            | (?!) )++ ) ;
        """
        % (b"|".join(sorted(_COMMANDS)), single, double),
        re.VERBOSE | re.DOTALL,
    )


def decoded(data: bytes) -> str:
    """Text without white space around it, line ends as the client sends them.

    Bytes that are not UTF-8 stand as lone surrogates.
    """
    return data.strip(_AROUND).decode("utf-8", "surrogateescape").replace("\r\n", "\n")


@cache
def _pieces(delimiter: bytes, dialect: Dialect) -> re.Pattern[bytes]:
    """Match texts that may hold a false delimiter, the delimiter itself, and the client's commands."""
    single, double = _strings(dialect)
    return re.compile(
        rb"(?P<DELIMITER> %s | \\[gG] )" % re.escape(delimiter)
        + rb"| ' (?: %s | (?!) )*+ (?:'|\Z)" % single
        + rb'| " (?: %s | (?!) )*+ (?:"|\Z)' % double
        + rb"""
          | ` [^`]*+ (?:`|\Z)
          | /\*(?!M?!) .*? (?:\*/|\Z)
          | (?: \# | --(?=\s|\Z) ) [^\n]*+
          | (?P<CLEAR> \\c )
          | (?P<COMMAND> \\ (?: [pstTnPRWwxheq?\#-] | \r?(?=\n) ) )
        """,
        re.VERBOSE | re.DOTALL,
    )


def _strings(dialect: Dialect) -> tuple[bytes, bytes]:
    """Give the patterns of the content of strings in single and in double quotes."""
    escaped, plain = rb"[^%s\\]++ | \\.", rb"[^%s]++"
    single = plain if dialect.no_backslash_escapes else escaped
    double = plain if dialect.no_backslash_escapes or dialect.ansi_quotes else escaped
    return single % b"'", double % b'"'
