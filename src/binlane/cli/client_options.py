"""The option syntax of the servers' own tools, put before click.

`-` and `_` are the same in names; a name may be cut where it stays unique; `--skip-NAME`,
`--disable-NAME`, `--enable-NAME` and `--NAME=0|1|ON|OFF|TRUE|FALSE` switch; `--loose-NAME` may be
unknown; a password's value is never the next argument. Options in `--help` stand in groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

ASK_PASSWORD: Final = "--ask-password"  # noqa: S105  # an option's name
"""The option that `-p` and `--password` without a value become."""
_ON: Final = frozenset({"1", "on", "true", "yes"})
_OFF: Final = frozenset({"0", "off", "false", "no"})
_OFF_PREFIXES: Final = ("skip-", "disable-", "no-")
_HELP_COLUMN: Final = 30
_REST: Final = "Other"


class GroupedOption(click.Option):
    """An option that stands under a heading.

    Attributes:
        group: The heading above the option.
    """

    def __init__(self, *declarations: Any, group: str, **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self.group = group

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option with its first names only; one that switches as `--[skip-]NAME`."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        short = [f"{name}, " for name in self.opts if not name.startswith("--")]
        name = next(name for name in self.opts if name.startswith("--"))
        if f"--skip-{name[2:]}" in self.secondary_opts:
            name = f"--[skip-]{name[2:]}"
        value = "" if self.is_flag or self.count else " " + self.make_metavar(ctx)
        return "".join(short) + name + value, record[1]

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """Return the texts beside the help text; ranges are described where they are broken."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class ToolCommand(click.Command):
    """A command whose options are written as the tools' are.

    Attributes:
        refused: Options of the tools that binlane has not, each with the reason.
        ignored: The options that have nothing to change here: taken, and without effect.
    """

    def __init__(
        self,
        *declarations: Any,
        refused: Mapping[str, str],
        ignored: Iterable[str],
        **attributes: Any,
    ) -> None:
        super().__init__(*declarations, **attributes)
        self.refused = refused
        self.ignored = frozenset(ignored)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Bring arguments into click's form first."""
        return super().parse_args(ctx, list(_Syntax(self, ctx).plain(args)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, group by group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", _REST), []).append(record)
        groups[_REST] = groups.pop(_REST)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records, col_max=_HELP_COLUMN)


class _Syntax:
    """Arguments as the tools take them → arguments as click does."""

    def __init__(self, command: ToolCommand, context: click.Context) -> None:
        self._context = context
        self._refused = command.refused
        self._ignored = command.ignored
        self._options: dict[str, click.Option] = {
            name: parameter
            for parameter in command.get_params(context)
            if isinstance(parameter, click.Option)
            for name in (*parameter.opts, *parameter.secondary_opts)
        }

    def plain(self, arguments: list[str]) -> Iterator[str]:
        is_value = False
        for index, argument in enumerate(arguments):
            if is_value or not argument.startswith("-") or argument == "-":
                is_value = False
                yield argument
            elif argument == "--":
                yield from arguments[index:]
                return
            else:
                plain = list(self._long(argument) if argument[1] == "-" else self._short(argument))
                is_value = bool(plain) and self._wants_value(plain[-1])
                yield from plain

    def _long(self, argument: str) -> Iterator[str]:
        typed, equals, value = argument[2:].partition("=")
        if typed == "password" and not equals:
            yield ASK_PASSWORD
            return
        name = self._full_name(typed)
        if name is None or name in self._ignored:
            return
        if name in self._refused:
            raise click.UsageError(f"--{name}: {self._refused[name]}", self._context)
        option = self._options[f"--{name}"]
        if equals and option.is_flag:
            yield from self._switched(option, name, value)
        else:
            yield f"--{name}{equals}{value}"

    def _short(self, argument: str) -> Iterator[str]:
        """Read short options; those of the password and refused ones are handled here."""
        for index, letter in enumerate(argument[1:], start=1):
            if letter == "p":
                if index > 1:
                    yield argument[:index]
                value = argument[index + 1 :]
                yield f"--password={value}" if value else ASK_PASSWORD
                return
            if f"-{letter}" in self._refused:
                raise click.UsageError(f"-{letter}: {self._refused[f'-{letter}']}", self._context)
            if self._takes_value(f"-{letter}"):
                break
        yield argument

    def _full_name(self, typed: str) -> str | None:
        """The whole name of an option that may be cut; None for one that may be unknown."""
        known = {name[2:] for name in self._options if name.startswith("--")}
        known |= {name for name in (*self._refused, *self._ignored) if not name.startswith("-")}
        plain = typed.replace("_", "-")
        for name in _spellings(plain.removeprefix("loose-")):
            if name in known:
                return name
            found = {self._canonical(other) for other in known if other.startswith(name)}
            if len(found) == 1:
                return found.pop()
            if found:
                names = ", ".join(f"--{other}" for other in sorted(found))
                raise click.UsageError(f"--{typed} may mean {names}", self._context)
        if plain.startswith("loose-"):
            return None
        raise click.NoSuchOption(f"--{typed}", possibilities=_near(plain, known), ctx=self._context)

    def _canonical(self, name: str) -> str:
        """Return one name for all options that set the same value in the same way."""
        option = self._options.get(f"--{name}")
        if option is None:
            return name
        names = option.secondary_opts if f"--{name}" in option.secondary_opts else option.opts
        return next(other for other in names if other.startswith("--"))[2:]

    def _switched(self, option: click.Option, name: str, value: str) -> Iterator[str]:
        if value.lower() not in _ON | _OFF:
            raise click.UsageError(f"--{name} is on or off, not {value!r}", self._context)
        is_negative = f"--{name}" in option.secondary_opts
        if (value.lower() in _ON) != is_negative:
            yield option.opts[-1]
        elif option.secondary_opts:
            yield option.secondary_opts[-1]

    def _wants_value(self, plain: str) -> bool:
        """True if the next argument is this option's value."""
        if plain.startswith("--"):
            return self._takes_value(plain)
        letters = plain[1:]
        takes = [index for index, letter in enumerate(letters) if self._takes_value(f"-{letter}")]
        return bool(takes) and takes[0] == len(letters) - 1

    def _takes_value(self, name: str) -> bool:
        option = self._options.get(name)
        return option is not None and not (option.is_flag or option.count)


def _spellings(name: str) -> Iterator[str]:
    yield name
    for prefix in _OFF_PREFIXES:
        if name.startswith(prefix):
            yield "skip-" + name.removeprefix(prefix)
    if name.startswith("enable-"):
        yield name.removeprefix("enable-")


def _near(name: str, known: Iterable[str]) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415  # only for an error

    return [f"--{other}" for other in get_close_matches(name, known)]
