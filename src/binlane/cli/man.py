"""`binlane man`: manual pages, made from the `--help` texts of the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from binlane import __version__
from binlane.errors import ConfigError

_EXIT_STATUS: Final = (
    ("0", "Done."),
    ("1", "The thing looked at is wrong."),
    ("2", "Wrong usage."),
    ("3", "A server or a disk could not be used."),
    ("130", "Interrupted."),
)
# A backslash begins a request within a line; `-` and `'` are typographic unless they are named.
_ESCAPES: Final = str.maketrans({"\\": r"\(rs", "-": r"\-", "'": r"\(aq", "`": r"\(ga"})


@click.command("man")
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
@click.option(
    "--into",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Write the pages of all commands into a folder, such as ~/.local/share/man/man1.",
)
@click.pass_context
def command(context: click.Context, *, names: tuple[str, ...], folder: Path | None) -> int:
    """Print a command's manual page, or write all of them.

    To read one: binlane man cat | man -l -
    """
    root = context.find_root()
    pages = {_name(each): _page(each) for each in _contexts(root.command, "binlane", None)}
    if folder is None:
        name = "-".join(("binlane", *names))
        if name not in pages:
            raise ConfigError(
                f"there is no command {' '.join(names)!r}",
                key="COMMAND",
                hint="the commands are " + ", ".join(each[8:] for each in pages if each[8:]),
            )
        click.echo(pages[name], nl=False)
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        (folder / f"{name}.1").write_text(page, encoding="utf-8")
    return 0


def _contexts(
    each: click.Command, name: str, parent: click.Context | None
) -> Iterator[click.Context]:
    """A command and all below it."""
    context = click.Context(each, info_name=name, parent=parent, **each.context_settings)
    yield context
    if isinstance(each, click.Group):
        for child_name in each.list_commands(context):
            child = each.get_command(context, child_name)
            assert child is not None, f"{child_name} is listed and missing"
            yield from _contexts(child, child_name, context)


def _name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _page(context: click.Context) -> str:
    each = context.command
    paragraphs = [_flat(part) for part in (each.help or "").partition("\f")[0].split("\n\n")]
    name = _name(context)
    lines = [
        f'.TH {_text(name.upper())} 1 "" "binlane {__version__}" "binlane"',
        *(".SH NAME", f"{_text(name)} \\- {_text(paragraphs[0].rstrip('.'))}"),
        *(".SH SYNOPSIS", f".B {_text(context.command_path)}"),
        _text(" ".join(each.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
    ]
    for paragraph in paragraphs:
        lines += [".PP", _text(paragraph)]
    lines.append(".SH OPTIONS")
    for parameter in each.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            lines += _term(*record)
    if isinstance(each, click.Group):
        lines.append(".SH COMMANDS")
        for child_name in each.list_commands(context):
            child = each.get_command(context, child_name)
            assert child is not None, f"{child_name} is listed and missing"
            lines += _term(f"{name}-{child_name}(1)", child.get_short_help_str(200))
    lines.append(".SH EXIT STATUS")
    for status, means in _EXIT_STATUS:
        lines += _term(status, means)
    if context.parent is not None:
        lines += [".SH SEE ALSO", f".BR {_text(_name(context.parent))} (1)"]
    return "\n".join(lines) + "\n"


def _term(term: str, meaning: str) -> list[str]:
    return [".TP", f".B {_text(term)}", _text(_flat(meaning))]


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("\b", "")).strip()


def _text(text: str) -> str:
    """A line of text, which must not begin as a request does."""
    escaped = text.translate(_ESCAPES)
    return f"\\&{escaped}" if escaped.startswith(".") else escaped
