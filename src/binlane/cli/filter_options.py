"""The options of the filter by tables and kinds of statements: the same for every command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from binlane.binlogs.filters.terms import FilterTerms
    from binlane.statements.sql.catalog import SchemaCatalog

_Option = TypeVar("_Option", bound=click.Option)
_Command = TypeVar("_Command", bound=Callable[..., Any])

_LISTS: Final = (
    ("--do-table", "DB.TABLE", "Only what concerns these tables; repeatable."),
    ("--ignore-table", "DB.TABLE", "Nothing that concerns these tables."),
    ("--do-db", "DB", "Only what concerns tables of these databases."),
    ("--ignore-db", "DB", "Nothing that concerns tables of these databases."),
    (
        "--wild-do-table",
        "PATTERN",
        "Only what concerns tables like this, such as shop.%; _ is one character.",
    ),
    ("--wild-ignore-table", "PATTERN", "Nothing that concerns tables like this."),
)
_NAMES: Final = tuple(name[2:].replace("-", "_") for name, _, _ in _LISTS)


def filter_options(make: type[_Option], **attributes: Any) -> tuple[_Option, ...]:
    """The options, as a command line takes them.

    Args:
        make: The class that makes the options.
        attributes: The arguments that this class takes beside those of every option.
    """
    return (
        *table_options(make, **attributes),
        make(
            ["--keep-empty-groups"],
            is_flag=True,
            help="Keep the GTIDs of event groups that become empty.",
            **attributes,
        ),
    )


def table_options(make: type[_Option], **attributes: Any) -> tuple[_Option, ...]:
    """Return the options that select tables; arguments as in `filter_options`."""
    return (
        *(
            make([name], multiple=True, metavar=metavar, help=text, **attributes)
            for name, metavar, text in _LISTS
        ),
        make(
            ["--rename"],
            type=click.Choice(["follow", "name"]),
            default="follow",
            show_default=True,
            help="follow: a renamed table stays chosen; name: only names count.",
            **attributes,
        ),
    )


def takes_filter(command: _Command) -> _Command:
    """Give a command these options, and `--do-event` for kinds of statements."""
    kinds = click.Option(
        ["--do-event"],
        multiple=True,
        metavar="KIND",
        help="Only statements of this kind, such as insert, create-table or ddl; repeatable.",
    )
    return _with(command, [*filter_options(click.Option), kinds])


def takes_tables(command: _Command) -> _Command:
    """Add the options that select tables to a command."""
    return _with(command, table_options(click.Option))


def _with(command: _Command, options: Sequence[click.Option]) -> _Command:
    # click takes them in the order in which decorators come to it, the last one first.
    taken = [*getattr(command, "__click_params__", []), *reversed(options)]
    command.__click_params__ = taken  # type: ignore[attr-defined]  # as click's own decorators do
    return command


def load_schema(path: str | Path, catalog: SchemaCatalog) -> None:
    """Fill a catalog with the objects of an SQL file.

    Raises:
        StoreError: If it cannot be read.
    """
    from binlane.binlogs.store.chunks import open_chunks  # noqa: PLC0415  # after --help

    catalog.load(b"".join(open_chunks(str(path))).decode("utf-8", "surrogateescape"))


def has_filter(given: Mapping[str, Any]) -> bool:
    """True if databases or tables are named."""
    return any(given[name] for name in _NAMES)


def filter_terms(given: Mapping[str, Any], *, kinds: Iterable[str] = ()) -> FilterTerms:
    """Return the filter that the options ask for.

    Args:
        given: Their values, by the names that click gives them.
        kinds: The kinds of statements to keep.

    Raises:
        click.UsageError: If a name or kind is none.
    """
    from binlane.binlogs.filters.terms import parse_terms  # noqa: PLC0415  # likewise
    from binlane.errors import ConfigError  # noqa: PLC0415  # after --help

    try:
        return parse_terms(
            {name: given[name] for name in _NAMES},
            rename=given["rename"],
            kinds=kinds,
            keeps_empty_groups=given.get("keep_empty_groups", False),
        )
    except ConfigError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise click.UsageError(f"{error}{hint}") from None
