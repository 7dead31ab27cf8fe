"""Reading tokens one after the other: the tools of every grammar here.

No grammar of its own. What a grammar does not understand raises `Stopped`, which never leaves
`analyse`; the statements of binlane itself turn it into a syntax error.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from binlane.sql.tokens import NAME_KINDS, Token, TokenKind


class Stopped(Exception):  # noqa: N818 - not an error: the text goes beyond the grammar
    """The analysis cannot go on.

    Attributes:
        token: The first token that is not understood.
        expected: What would have been.
    """

    def __init__(self, token: Token, expected: str) -> None:
        super().__init__(f"expected {expected} at {token.text!r}")
        self.token = token
        self.expected = expected


class Cursor:
    """A place in a sequence of tokens.

    Words are compared in capitals and match unquoted tokens only.
    """

    __slots__ = ("_end", "_tokens", "index")

    def __init__(self, tokens: Sequence[Token]) -> None:
        """Start at the first of `tokens`; an END token at their end may be missing."""
        if not tokens or tokens[-1].kind is not TokenKind.END:
            end = tokens[-1].end if tokens else 0
            tokens = [*tokens, Token(TokenKind.END, "", end, "")]
        self._tokens = tokens
        self._end = len(tokens) - 1
        self.index = 0

    @property
    def token(self) -> Token:
        """The current token."""
        return self._tokens[self.index]

    @property
    def word(self) -> str:
        """The current word in capitals, empty if there is none."""
        return self._tokens[self.index].word

    @property
    def is_at_end(self) -> bool:
        """Whether all tokens are read."""
        return self.index == self._end

    def ahead(self, count: int) -> Token:
        """The token `count` behind the current one; a negative count looks back."""
        return self._tokens[min(self.index + count, self._end)]

    def advance(self) -> Token:
        """Read one token; at the end it stays."""
        token = self._tokens[self.index]
        self.index = min(self.index + 1, self._end)
        return token

    def stop(self, expected: str) -> Stopped:
        """The exception that says the current token is not what was expected."""
        return Stopped(self.token, expected)

    def accept(self, *words: str) -> bool:
        """Read these words if they come next, all of them."""
        if self._tokens[self.index].word != words[0]:
            return False
        if any(self.ahead(count).word != word for count, word in enumerate(words)):
            return False
        self.index += len(words)
        return True

    def accept_any(self, words: Collection[str]) -> str:
        """Read one of these words if it comes next, and say which."""
        word = self.word
        if word not in words:
            return ""
        self.index += 1
        return word

    def accept_operator(self, text: str) -> bool:
        """Read this operator if it comes next."""
        token = self.token
        if token.kind is not TokenKind.OPERATOR or token.text != text:
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
        if not self.accept_operator(text):
            raise self.stop(text)

    def expect_end(self) -> None:
        """Be at the end.

        Raises:
            Stopped: If something follows.
        """
        if not self.is_at_end:
            raise self.stop("the end of the statement")

    def identifier(self) -> str:
        """Read a name.

        Raises:
            Stopped: If none comes next.
        """
        if self.token.kind not in NAME_KINDS or not self.token.value:
            raise self.stop("a name")
        return self.advance().value

    def qualified_name(self) -> tuple[str | None, str]:
        """Read `table` or `database.table`.

        Raises:
            Stopped: If none comes next, or one of more than two parts.
        """
        first = self.identifier()
        if not self.accept_operator("."):
            return None, first
        second = self.identifier()
        if self.token.text == ".":
            raise self.stop("a name of at most two parts")
        return first, second

    def group(self) -> list[Token]:
        """Read a parenthesised group and give what is inside.

        Raises:
            Stopped: If none comes next or it does not end.
        """
        opening = self.token
        self.expect_operator("(")
        start, depth = self.index, 1
        while not self.is_at_end:
            depth += _depth_change(self.advance())
            if depth == 0:
                return list(self._tokens[start : self.index - 1])
        raise Stopped(opening, "a closing parenthesis")

    def until(self, words: Collection[str], *, operators: Collection[str] = ()) -> list[Token]:
        """Read up to one of these words or operators outside of parentheses, or to the end."""
        start, depth = self.index, 0
        while not self.is_at_end:
            token = self.token
            if depth == 0 and (token.word in words or _is_operator(token, operators)):
                break
            depth += _depth_change(token)
            if depth < 0:
                break
            self.index += 1
        return list(self._tokens[start : self.index])

    def since(self, start: int) -> list[Token]:
        """What was read since `index` was `start`."""
        return list(self._tokens[start : self.index])

    def at(self, index: int) -> Token:
        """The token of an index."""
        return self._tokens[min(index, self._end)]

    def rest(self) -> list[Token]:
        """Read everything that is left."""
        start, self.index = self.index, self._end
        return list(self._tokens[start : self._end])


def _is_operator(token: Token, operators: Collection[str]) -> bool:
    return token.kind is TokenKind.OPERATOR and token.text in operators


def _depth_change(token: Token) -> int:
    if token.kind is not TokenKind.OPERATOR:
        return 0
    return {"(": 1, ")": -1}.get(token.text, 0)


def split(tokens: Sequence[Token], separator: str = ",") -> list[list[Token]]:
    """Split tokens at an operator outside of parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if depth == 0 and _is_operator(token, (separator,)):
            parts.append([])
            continue
        depth += _depth_change(token)
        parts[-1].append(token)
    return parts
