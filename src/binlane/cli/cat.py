"""`binlane cat`: prints binlogs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from binlane.cli.cat_options import IGNORED, OPTIONS, REFUSED
from binlane.cli.client_options import GroupedOption, ToolCommand
from binlane.cli.talk import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from binlane.binlogs.cat.event_streams import LogFile
    from binlane.binlogs.cat.force import LeftOut
    from binlane.binlogs.cat.renderer import Renderer
    from binlane.cli.cat_request import CatRequest
    from binlane.cli.progress_meter import Meter
    from binlane.log.codec.encryption import KeyRing
    from binlane.log.codec.event import Event

_EXIT_WRONG = 1
_NOTES_MAX = 10
_HELP = """Print binlogs: as the server's own tool does, as JSON, or as SQL.

FILE is a binlog file, also one compressed by gzip, xz or zstd; - is standard input. Several files
are one stream in the order given: a start position is in the first, a stop position in the last.
The options are those of mariadb-binlog and mysqlbinlog, and some more."""


def _cat(*, files: tuple[str, ...], **given: Any) -> int:
    from binlane.cli.cat_request import CatRequest  # noqa: PLC0415  # after --help

    request = CatRequest.of(files, given)
    if given["raw"]:
        from binlane.cli.cat_remote import write_raw  # noqa: PLC0415  # only with a server

        write_raw(request)
        return 0
    run = _Run(request)
    if given["summary"]:
        run.summarise()
    else:
        run.render()
    return _EXIT_WRONG if run.has_damage or run.is_unmatched else 0


class _Run:
    """One call of `cat`.

    Attributes:
        has_damage: True if damage was passed over.
        is_unmatched: True if the log has nothing of what the filter names.
    """

    def __init__(self, request: CatRequest) -> None:
        self.has_damage = self.is_unmatched = False
        self._request = request
        self._filter = request.filter_state()
        self._notes = 0
        self._cut: Callable[[], None] = _nothing

    def render(self) -> None:
        """Print events in the form of the request."""
        from binlane.cli.cat_fast import is_worth_kernels  # noqa: PLC0415  # after --help
        from binlane.cli.cat_print import event_printer, file_opener  # noqa: PLC0415
        from binlane.cli.cat_renderers import catalog_for, renderer_for  # noqa: PLC0415
        from binlane.cli.output import open_output  # noqa: PLC0415

        request = self._request
        renderer = renderer_for(request, catalog_for(request))
        # Bytes of a binlog that are no text are printed as they were, or in JSON as their escape.
        errors = "backslashreplace" if request.given["format_"] == "json" else "surrogateescape"
        with open_output(request.given["result_file"], errors=errors) as output:
            self._cut = _cutter(renderer, output)
            output.writelines(f"{line}\n" for line in renderer.head())
            if is_worth_kernels(request):
                self._print_fast(renderer, output)
            else:
                printer = event_printer(
                    renderer,
                    output,
                    request.event_types,
                    flushes=request.given["stop_never"],
                )
                self._run(
                    printer,
                    writes_to_terminal=output.isatty(),
                    open_file=file_opener(renderer, output),
                )
            output.writelines(f"{line}\n" for line in renderer.finish())
        self._tell_of_filter()

    def _tell_of_filter(self) -> None:
        if self._filter is None:
            return
        self.is_unmatched = self._filter.is_unmatched
        for text in () if self._request.given["quiet"] else self._filter.summary():
            say(f"binlane: {text}", err=True)

    def _print_fast(self, renderer: Renderer, output: TextIO) -> None:
        from binlane.cli.cat_fast import FilterUse, print_fast  # noqa: PLC0415  # for large logs only

        state = self._filter
        with self._metered(writes_to_terminal=output.isatty()) as meter:
            print_fast(
                self._request,
                renderer,
                output,
                keys=self._keys(),
                meter=meter,
                filtering=None if state is None else FilterUse(state, self._note),
            )

    def summarise(self) -> None:
        """Print a summary of the log."""
        from binlane.binlogs.cat.summary import Summary  # noqa: PLC0415  # only what is asked for
        from binlane.cli.cat_summary import (  # noqa: PLC0415
            count_fast,
            is_worth_kernels,
            print_summary,
        )

        summary = Summary()
        if is_worth_kernels(self._request):
            with self._metered(writes_to_terminal=False) as meter:
                count_fast(summary, self._request, keys=self._keys(), meter=meter)
        else:
            self._run(lambda event, file: summary.feed(event, file=file), writes_to_terminal=False)
        print_summary(summary, self._request)
        self._tell_of_filter()

    def _run(
        self,
        print_event: Callable[[Event, str], None],
        *,
        writes_to_terminal: bool,
        open_file: Callable[[Event, str], None] | None = None,
    ) -> None:
        from binlane.cli.cat_print import Pipeline  # noqa: PLC0415  # after --help

        pipeline = Pipeline(
            self._request, print_event, self._filter, self._note, open_file=open_file
        )
        with self._metered(writes_to_terminal=writes_to_terminal) as meter:
            pipeline.run(self._files(meter))

    def _files(self, meter: Meter | None) -> Iterable[LogFile]:
        request = self._request
        if request.is_remote:
            from binlane.cli.cat_remote import remote_files  # noqa: PLC0415  # only with a server

            return remote_files(request)
        from binlane.binlogs.cat.event_streams import Reading, log_files  # noqa: PLC0415  # after --help

        reading = Reading(
            keys=self._keys(),
            start_position=request.start_position,
            takes_open_files=request.given["force_if_open"],
            report=self._left_out if request.given["force"] else None,
            meter=meter,
        )
        return log_files(request.files, reading)

    def _keys(self) -> KeyRing | None:
        path = self._request.given["encryption_keys"]
        if path is None:
            return None
        from binlane.binlogs.store.chunks import read_keys  # noqa: PLC0415  # for encrypted logs only

        return read_keys(path)

    @contextmanager
    def _metered(self, *, writes_to_terminal: bool) -> Iterator[Meter | None]:
        from binlane.cli.progress_meter import meter_for  # noqa: PLC0415  # after --help

        request = self._request
        meter = None
        if not request.is_remote:
            is_quiet = request.given["quiet"]
            meter = meter_for(
                request.files, writes_to_terminal=writes_to_terminal, is_quiet=is_quiet
            )
        try:
            yield meter
        finally:
            if meter is not None:
                meter.close()

    def _left_out(self, part: LeftOut) -> None:
        self.has_damage = True
        self._cut()
        say(f"binlane: left out {part}", err=True)

    def _note(self, text: str) -> None:
        """Print the first few notes; all of them would hide everything else."""
        self._notes += 1
        if self._request.given["quiet"] or self._notes > _NOTES_MAX:
            return
        say(f"binlane: {text}", err=True)
        if self._notes == _NOTES_MAX:
            click.echo("binlane: further notes of this kind are not printed", err=True)


def _nothing() -> None:
    """Do nothing where a group is cut off: some renderers hold nothing back."""


def _cutter(renderer: Renderer, output: TextIO) -> Callable[[], None]:
    """Return a function that has a renderer end the group that was cut off by damage."""
    from binlane.binlogs.cat.renderer import HoldsGroups  # noqa: PLC0415  # after --help

    if not isinstance(renderer, HoldsGroups):
        return _nothing

    def cut() -> None:
        output.writelines(f"{line}\n" for line in renderer.cut())

    return cut


def _print_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001  # click's own signature
    if value:
        from binlane import __version__  # noqa: PLC0415  # only what is asked for

        click.echo(f"binlane {__version__}")
        context.exit()


_VERSION = GroupedOption(
    ["-V", "--version"],
    group="Other",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)

command = ToolCommand(
    "cat",
    callback=_cat,
    params=[
        click.Argument(["files"], nargs=-1, required=True, metavar="FILE..."),
        *OPTIONS,
        _VERSION,
    ],
    refused=REFUSED,
    ignored=IGNORED,
    help=_HELP,
    context_settings={"help_option_names": ["-?", "--help"]},
)
