"""What every node has, and what it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final, TypeVar

_T = TypeVar("_T")


@dataclass(slots=True, eq=False)
class Node:
    """A part of a statement.

    Attributes:
        at: Where it begins, in characters from 0.
        end: Where it ends: behind its last character.
    """

    at: int
    end: int


def told(values: Sequence[_T]) -> Sequence[_T]:
    """Items, without long runs of plain literals, which are read when they are asked for."""
    found: Sequence[_T] = getattr(values, "told", values)
    return found


def children(node: Node) -> Iterator[Node]:
    """The nodes that a node is made of, in the order of its fields, but for runs of literals."""
    kind: Any = type(node)  # not hashable to the type checker, as its instances are not
    for name in _names(kind):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, Sequence) and value.__class__ is not str:
            yield from _inside(value)


def walk(node: Node) -> Iterator[Node]:
    """A node and all that it is made of, but for runs of literals."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        left += children(node)


def height(node: Node) -> int:
    """How many nodes stand within one another at most."""
    found = 0
    left = [(node, 1)]
    while left:
        node, depth = left.pop()
        found = max(found, depth)
        left += [(child, depth + 1) for child in children(node)]
    return found


def _inside(values: Sequence[object]) -> Iterator[Node]:
    for value in told(values):
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from _inside(value)


_PLAIN: Final = frozenset(
    f"{kind}{ending}"
    for kind in ("int", "bool", "str", "tuple[str, ...]", "tuple[str, str]", "frozenset[str]")
    for ending in ("", " | None")
)


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a kind of nodes that may hold others."""
    return tuple(field.name for field in fields(kind) if field.type not in _PLAIN)
