"""Options written as the servers' tools take them."""

from __future__ import annotations

from typing import Any

import click
import pytest

from binlane.cli.client_options import GroupedOption, ToolCommand


def parsed(*arguments: str) -> dict[str, Any]:
    def option(*names: str, **more: Any) -> GroupedOption:
        return GroupedOption(names, group="All", help="What it is for.", **more)

    command = ToolCommand(
        "tool",
        callback=lambda **given: given,
        params=[
            click.Argument(["files"], nargs=-1),
            option("-v", "--verbose", count=True),
            option("-j", "--start-position"),
            option("--start-datetime"),
            option("-F", "--force-if-open/--skip-force-if-open", default=True),
            option("--skip-gtids", is_flag=True),
            option("-p", "--password"),
            option("--ask-password", is_flag=True, hidden=True),
            option("-P", "--port", type=click.IntRange(0, 9)),
        ],
        refused={"plugin-dir": "it loads no plugins", "-C": "it compresses nothing"},
        ignored=("no-defaults",),
    )
    given: dict[str, Any] = command.main(list(arguments), standalone_mode=False)
    return {name: value for name, value in given.items() if value not in (None, False, 0, ())}


ON = {"force_if_open": True}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["a", "b"], {"files": ("a", "b")}),
        (["--start_position=5"], {"start_position": "5"}),
        (["--start-pos", "5"], {"start_position": "5"}),
        (["-j5", "-vv", "-v"], {"start_position": "5", "verbose": 3}),
        (["-vj", "-5"], {"start_position": "-5", "verbose": 1}),
        (["--skip-gtids"], {"skip_gtids": True}),
        (["--skip-gtids=1"], {"skip_gtids": True}),
        (["--skip-gtids=OFF"], {}),
        (["-p", "file"], {"ask_password": True, "files": ("file",)}),
        (["-psecret"], {"password": "secret"}),
        (["-vpse-cret"], {"password": "se-cret", "verbose": 1}),
        (["--password=se=cret"], {"password": "se=cret"}),
        (["--password", "file"], {"ask_password": True, "files": ("file",)}),
        (["--no-defaults", "--loose-nothing=3"], {}),
        (["--", "--password"], {"files": ("--password",)}),
        (["-"], {"files": ("-",)}),
    ],
)
def test_what_the_tools_understand(arguments: list[str], expected: dict[str, Any]) -> None:
    assert parsed(*arguments) == expected | ON


@pytest.mark.parametrize(
    "argument",
    ["--skip-force-if-open", "--disable-force-if-open", "--force-if-open=0", "--no-force-if-open"],
)
def test_switching_off(argument: str) -> None:
    assert parsed(argument) == {}
    assert parsed("--force-if-open=off", "--enable-force-if-open") == ON


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--plugin-dir=x", "--plugin-dir: it loads no plugins"),
        ("-C", "-C: it compresses nothing"),
        ("--start", "--start may mean --start-datetime, --start-position"),
        ("--force-if-open=maybe", "--force-if-open is on or off, not 'maybe'"),
        ("--nothing", "No such option"),
        ("--port=10", "10 is not in the range"),
    ],
)
def test_what_is_refused_says_why(argument: str, message: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        parsed(argument)
    assert message in caught.value.format_message()
