"""Reading tokens one after the other: the tools of every grammar here.

What a grammar does not understand raises `Stopped`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from binlane.names import folded
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import (
    NAME_KINDS,
    Token,
    TokenKind,
    bare_name,
    depth_change,
    quoted_name,
    read_tokens,
    value_of,
)

if TYPE_CHECKING:
    from binlane.statements.sql.tree.expressions import Expression, Node, Query
from binlane.statements.sql.parser.reserved_words import no_aliases, reserved_words

_T = TypeVar("_T")
DEPTH_MAX: Final = 760
"""Calls that reading an expression or query may nest; more would end the interpreter's stack."""
_AHEAD_MAX: Final = 4
"""Tokens that a reader looks ahead at without asking for the end."""


class Stopped(Exception):  # noqa: N818 - not an error: the text goes beyond the grammar
    """The text does not follow the grammar.

    Attributes:
        token: The first token that is not understood.
        expected: Text that the grammar allows there.
    """

    def __init__(self, token: Token, expected: str) -> None:
        super().__init__(f"expected {expected} at {token.text!r}")
        self.token = token
        self.expected = expected


class NotAnalysed(Stopped):
    """A server may take the text; it is not analysed here."""


class TooMuch(NotAnalysed):
    """The text is deeper or longer than is analysed.

    Attributes:
        reason: Text that names the part that is too long or too deep.
    """

    def __init__(self, token: Token, reason: str) -> None:
        super().__init__(token, f"less: {reason}")
        self.reason = reason


TOO_DEEP: Final = "it is nested too deep"


def too_deep(token: Token) -> TooMuch:
    """The exception that says that a text is nested too deeply."""
    return TooMuch(token, TOO_DEEP)


@dataclass(frozen=True, slots=True)
class Grammar:
    """Readers of parts that stand inside of expressions and have expressions inside.

    Attributes:
        query: Reads a query; given one in parentheses that was read, the rest of the one around it.
        name: Reads a name, or the call that begins with one.
        statement: Reads a statement that is no compound one.
        body: Reads the body of a routine, trigger or event.
        account: Reads the name of an account.
        words: Readers of operands by the word that they begin with; None: it is a name.
        signs: Readers of operands by the sign that they begin with.
    """

    query: Callable[[Cursor, Query | None], Query]
    name: Callable[[Cursor], Expression]
    statement: Callable[[Cursor], Node]
    body: Callable[[Cursor], Node]
    account: Callable[[Cursor], Node]
    words: Mapping[str, Callable[[Cursor], Expression | None]]
    signs: Mapping[str, Callable[[Cursor], Expression | None]]


class Cursor:
    """A place in the tokens of a text.

    Words are compared in capitals and match unquoted tokens only.

    Attributes:
        text: Text that the cursor goes through.
        dialect: Dialect in which the text is read.
        kinds: Kinds of all tokens; for `words`, `texts` and `starts` see `Tokens`.
        index: The number of the current token.
        reserved: Words that are no names.
        no_aliases: Words that are no aliases.
        depth: Number of calls that are nested at present.
        high: Operations that stand to the left of others, so that a tree may be high.
        has_new_values: VALUES(column) is a function: in ON DUPLICATE KEY UPDATE.
        grammar: Readers of parts that stand inside of expressions and have expressions inside.
    """

    __slots__ = (
        "_end",
        "depth",
        "dialect",
        "grammar",
        "has_new_values",
        "high",
        "index",
        "kinds",
        "no_aliases",
        "reserved",
        "starts",
        "text",
        "texts",
        "words",
    )

    def __init__(self, text: str, dialect: Dialect, grammar: Grammar) -> None:
        """Start at the first token.

        Raises:
            SqlSyntaxError: If a comment, string or quoted name does not end.
            TooMuch: If it has too many tokens.
        """
        tokens = read_tokens(text, dialect)
        if tokens.kinds[-1] is not TokenKind.END:
            raise TooMuch(
                Token(tokens.kinds[-1], tokens.texts[-1], tokens.starts[-1], tokens.texts[-1]),
                f"it has more than {len(tokens.kinds) - 1:,} words and signs",
            )
        self.text = text
        self.dialect = dialect
        self.kinds = tokens.kinds
        self.words = tokens.words
        self.texts = tokens.texts
        self.starts = tokens.starts
        self.reserved = reserved_words(dialect)
        self.no_aliases = no_aliases(dialect)
        self.grammar = grammar
        self._end = len(self.kinds) - 1
        # Whoever looks ahead of the end sees the end.
        self.kinds += [TokenKind.END] * _AHEAD_MAX
        self.words += [""] * _AHEAD_MAX
        self.texts += [""] * _AHEAD_MAX
        self.starts += [len(text)] * _AHEAD_MAX
        self.index = 0
        self.depth = 0
        self.high = 0
        self.has_new_values = dialect.flavor != "mariadb"

    def part(self, start: int, end: int) -> Cursor:
        """A cursor over what stands between two places, which may cut a token in two.

        Nodes read there stand as deep as those that this cursor reads.
        """
        inside = Cursor(self.text[start:end], self.dialect, self.grammar)
        inside.text = self.text
        inside.starts = [start + each for each in inside.starts]
        inside.depth = self.depth
        return inside

    # Place ------------------------------------------------------------------------------------

    def token_at(self, index: int) -> Token:
        """The token of a number."""
        index = min(index, self._end)
        kind, text = self.kinds[index], self.texts[index]
        return Token(kind, text, self.starts[index], value_of(kind, text, self.dialect))

    def string_at(self, index: int) -> str:
        """The value of a token that is a string."""
        return value_of(self.kinds[index], self.texts[index], self.dialect)

    @property
    def token(self) -> Token:
        """The current token."""
        return self.token_at(self.index)

    @property
    def kind(self) -> TokenKind:
        """The current token's kind."""
        return self.kinds[self.index]

    @property
    def word(self) -> str:
        """The current word in capitals, or operator; empty for names in quotes and literals."""
        return self.words[self.index]

    @property
    def start(self) -> int:
        """Place of the current token, in characters from 0."""
        return self.starts[self.index]

    @property
    def end(self) -> int:
        """Place behind the token that was read last; 0 before the first."""
        index = self.index - 1
        return self.starts[index] + len(self.texts[index]) if index >= 0 else 0

    @property
    def is_at_end(self) -> bool:
        """True if all tokens are read."""
        return self.index == self._end

    def ahead(self, count: int) -> Token:
        """The token `count` behind the current one; a negative count looks back."""
        return self.token_at(self.index + count)

    def word_ahead(self, count: int) -> str:
        """The word `count` behind the current one."""
        return self.words[min(self.index + count, self._end)]

    def stop(self, expected: str) -> Stopped:
        """The exception that says the current token is not what was expected."""
        return Stopped(self.token, expected)

    def deeper(self, calls: int) -> None:
        """Read what stands inside of another thing; the caller takes the calls back.

        Args:
            calls: Number of calls until the same thing may stand inside once more.

        Raises:
            TooMuch: If that is too much.
        """
        self.depth += calls
        if self.depth > DEPTH_MAX:
            raise too_deep(self.token)

    # Reading ----------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Read one token; at the end it stays."""
        token = self.token_at(self.index)
        self.index = min(self.index + 1, self._end)
        return token

    def accept(self, *words: str) -> bool:
        """Read these words, or operators, if they come next, all of them."""
        index = self.index
        if self.words[index] != words[0]:
            return False
        for word in words:
            if self.words[index] != word:
                return False
            index += 1
        self.index = index
        return True

    def accept_any(self, words: Collection[str]) -> str:
        """Read one of these words if it comes next, and say which."""
        word = self.words[self.index]
        if not word or word not in words:
            return ""
        self.index += 1
        return word

    def accept_operator(self, text: str) -> bool:
        """Read this operator if it comes next."""
        if self.words[self.index] != text:
            return False
        self.index += 1
        return True

    def expect(self, *words: str) -> None:
        """Read these words.

        Raises:
            Stopped: If they do not come next.
        """
        if not self.accept(*words):
            raise self.stop(" ".join(words))

    def expect_operator(self, text: str) -> None:
        """Read this operator.

        Raises:
            Stopped: If it does not come next.
        """
        if self.words[self.index] != text:
            raise self.stop(text)
        self.index += 1

    def expect_any(self, words: Collection[str]) -> str:
        """Read one of these words, and say which.

        Raises:
            Stopped: If none comes next.
        """
        word = self.accept_any(words)
        if not word:
            raise self.stop(" or ".join(words))
        return word

    def expect_end(self) -> None:
        """Be at the end.

        Raises:
            Stopped: If something follows.
        """
        if self.index != self._end:
            raise self.stop("the end of the statement")

    def until(self, words: Collection[str]) -> list[Token]:
        """Read up to one of these words outside of parentheses, or to the end."""
        tokens: list[Token] = []
        depth = 0
        while not self.is_at_end and (depth or self.word not in words):
            token = self.token
            depth += depth_change(token)
            if depth < 0:
                break
            tokens.append(self.advance())
        return tokens

    def several(self, read: Callable[[Cursor], _T]) -> tuple[_T, ...]:
        """Read things with commas between them, at least one."""
        found = [read(self)]
        while self.words[self.index] == ",":
            self.index += 1
            found.append(read(self))
        return tuple(found)

    def enclosed(self, read: Callable[[Cursor], _T], calls: int = 0) -> _T:
        """Read a thing in parentheses, which nests so many calls (`deeper`) and this one."""
        self.expect_operator("(")
        self.deeper(calls + 1)
        found = read(self)
        self.depth -= calls + 1
        self.expect_operator(")")
        return found

    # Names and strings ------------------------------------------------------------------------

    @property
    def is_at_name(self) -> bool:
        """True if a name comes next: a word that is not reserved, or one in quotes."""
        kind = self.kinds[self.index]
        if kind is TokenKind.NAME:
            return self.words[self.index] not in self.reserved
        return kind in NAME_KINDS

    @property
    def is_at_alias(self) -> bool:
        """True if a name comes next that may be an alias without AS."""
        kind = self.kinds[self.index]
        if kind is TokenKind.NAME:
            return self.words[self.index] not in self.no_aliases
        return kind in NAME_KINDS

    def identifier(self) -> str:
        """Read a name.

        Raises:
            Stopped: If none comes next, or a reserved word.
        """
        index = self.index
        kind = self.kinds[index]
        if kind is TokenKind.NAME:
            if self.words[index] in self.reserved:
                raise self.stop("a name")
            self.index = index + 1
            text = self.texts[index]
            return bare_name(text, self.dialect) if self.dialect.charset else text
        return self.any_name()

    def object_identifier(self) -> str:
        """Read the name of a database or table, or an alias; in lower case if those have no case.

        Raises:
            Stopped: If none comes next, or a reserved word.
        """
        name = self.identifier()
        return folded(name) if self.dialect.lower_case_names else name

    def any_name(self, *, may_be_empty: bool = False) -> str:
        """Read a name, also a reserved word (behind a dot, or where only a name can stand).

        Args:
            may_be_empty: True if a name of no characters, in quotes, is allowed.

        Raises:
            Stopped: If none comes next.
        """
        index = self.index
        kind = self.kinds[index]
        text = self.texts[index]
        if kind is TokenKind.QUOTED_NAME:
            if len(text) == 2 and not may_be_empty:
                raise self.stop("a name")
            text = quoted_name(text, self.dialect)
        elif kind not in NAME_KINDS:
            raise self.stop("a name")
        elif self.dialect.charset:
            text = bare_name(text, self.dialect)
        self.index = index + 1
        return text

    def qualified_name(self) -> tuple[str | None, str]:
        """Read `table` or `database.table`.

        Raises:
            Stopped: If none comes next, or one of more than two parts.
        """
        first = self.identifier()
        if self.words[self.index] != ".":
            return None, first
        self.index += 1
        second = self.identifier()
        if self.words[self.index] == ".":
            raise self.stop("a name of at most two parts")
        return first, second

    def string(self) -> str:
        """Read a string without a character set, and give its value.

        Raises:
            Stopped: If none comes next.
        """
        if self.kinds[self.index] is not TokenKind.STRING:
            raise self.stop("a string")
        self.index += 1
        return self.string_at(self.index - 1)
