"""`binlane demo`: the whole story on this machine."""

from __future__ import annotations

import shutil
import signal
import tempfile
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from rich.console import Console
from rich.table import Table

from binlane.cli.talk import verbose_option
from binlane.errors import BinlaneError, PeerError

if TYPE_CHECKING:
    from binlane.live.provision.demo.stage import DemoStage
    from binlane.live.provision.demo.story import BinlogFigures, Claim, Story

_INSTALLED = ""


@click.command("demo")
@click.option("--keep", is_flag=True, help="Leave everything running and print how to connect.")
@click.option(
    "--transactions",
    type=click.IntRange(10),
    default=750,
    show_default=True,
    help="Transactions of each of the shop's four sessions.",
)
@click.option(
    "--mysql",
    is_flag=False,
    flag_value=_INSTALLED,
    metavar="[FOLDER]",
    help="Use MySQL: the installed one, or the one that tools/unpack-mysql unpacked into FOLDER.",
)
@verbose_option
@click.option("--quiet", is_flag=True, help="Print only the table at the end.")
def command(*, keep: bool, transactions: int, mysql: str | None, quiet: bool) -> int:
    """Show the whole product on private servers, and check it. Exit code 0: every check held."""
    from binlane.live.provision.demo import dialect as dialects  # noqa: PLC0415  # after --help
    from binlane.live.provision.demo.stage import DemoStage  # noqa: PLC0415  # as above
    from binlane.live.provision.demo.story import Story  # noqa: PLC0415  # as above

    console = Console(highlight=False)
    story_console = Console(highlight=False, quiet=quiet)
    if mysql is None:
        dialect = dialects.mariadb()
    else:
        dialect = dialects.mysql(None if mysql == _INSTALLED else Path(mysql).resolve())
    begin = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="binlane-demo-"))
    signal.signal(signal.SIGTERM, _interrupt)
    stage: DemoStage | None = None
    done = False
    try:
        story_console.print(f"[bold]1/7  A private {dialect.name}[/bold]")
        stage = DemoStage(directory, dialect)
        voice = _Voice(story_console)
        story = Story(stage, voice, transactions=transactions)
        with voice.status:
            checks = _tell(story_console, voice, story, directory)
        done = all(check.holds for check in checks)
        _close(console, story.figures, checks, time.monotonic() - begin)
        if keep:
            _tell_how_to_connect(console, stage)
        return 0 if done else 1
    finally:
        if stage is not None and not keep:
            stage.close()
        if done and not keep:
            shutil.rmtree(directory)
        elif not done:
            console.print(f"Data and logs are in {directory}")


class _Voice:
    """Prints the story on a console; on a terminal a line below it shows the progress."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.status = console.status("")

    def say(self, line: str, style: str | None = None) -> None:
        """Print one line; a narrow terminal gets it indented on several lines."""
        text = f"     {line}"
        if self._console.is_terminal and len(text) > self._console.width:
            text = "\n".join(
                textwrap.wrap(
                    text,
                    self._console.width - 1,
                    subsequent_indent="       ",
                    break_on_hyphens=False,
                )
            )
        self._console.print(text, style=style, markup=False, soft_wrap=True)

    def progress(self, text: str) -> None:
        """Show progress in the line below; a pipe gets nothing."""
        self.status.update(text)


def _tell(console: Console, voice: _Voice, story: Story, directory: Path) -> list[Claim]:
    """Run the steps; a failure names its step and the place of the logs."""
    from pymysql import MySQLError  # noqa: PLC0415  # an extra's, without which there is --help

    checks: list[Claim] = []
    for number, (title, step) in enumerate(story.steps, 2):
        console.print(f"[bold]{number}/7  {title}[/bold]")
        voice.progress(title)
        try:
            for check in step():
                checks.append(check)
                mark = "[green]✓[/green]" if check.holds else "[red]✗[/red]"
                console.print(f"  {mark}  {check.claim}", soft_wrap=True)
                voice.say(check.detail, "dim")
        except (BinlaneError, MySQLError) as error:
            hint = error.hint if isinstance(error, BinlaneError) else ""
            raise PeerError(
                f"step {number} failed: {error}",
                peer="demo",
                phase=title,
                hint=hint or f"the logs are in {directory}",
            ) from error
    return checks


def _close(
    console: Console, figures: list[BinlogFigures], checks: list[Claim], seconds: float
) -> None:
    table = Table(title="Binlogs", title_justify="left")
    for column in ("binlog", "files", "groups", "events", "rows", "bytes", "lag"):
        table.add_column(column, justify="left" if column == "binlog" else "right")
    for row in figures:
        counts = (row.files, row.groups, row.events, row.rows, row.bytes)
        table.add_row(row.name, *(f"{count:,}" for count in counts), f"{row.lag_s:.2f} s")
    console.print(table)
    held = sum(check.holds for check in checks)
    style = "green" if held == len(checks) else "red"
    console.print(f"[{style}]{held} of {len(checks)} checks held[/{style}] in {seconds:.0f} s")


def _tell_how_to_connect(console: Console, stage: DemoStage) -> None:
    from binlane.live.provision.demo.stage import ADMIN, ADMIN_PASSWORD  # noqa: PLC0415  # as above

    client = stage.dialect.client
    lines = [
        f"binlane:  {client} --host=127.0.0.1 --port={stage.port} --user={ADMIN} --password={ADMIN_PASSWORD}",
        f"source:   {client} --host=127.0.0.1 --port={stage.source.port} --user=root",
        f"data:     {stage.directory}",
        f"stop:     kill {stage.serve_pid} {stage.source.process_id}",
    ]
    if stage.replica is not None:
        lines.insert(
            2, f"replica:  {client} --host=127.0.0.1 --port={stage.replica.port} --user=root"
        )
        lines[-1] += f" {stage.replica.process_id}"
    console.print("Everything goes on running:")
    console.print("\n".join(f"  {line}" for line in lines), soft_wrap=True)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
