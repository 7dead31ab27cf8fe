"""`binlane serve`: capture, routing, store and listeners, until a signal ends it."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
from dataclasses import replace
from pathlib import Path

import click


@click.command("serve")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    default=None,
    help="The configuration file; binlane.toml by default, if there is one.",
)
@click.option(
    "--embedded",
    is_flag=True,
    help="Start a MariaDB of binlane's own in data_dir as the source.",
)
@click.option(
    "--port-file",
    type=click.Path(path_type=Path),
    help="Write the MySQL port to this file once clients can log in.",
)
@click.option("--verbose", is_flag=True, help="Log more, overriding the settings.")
@click.option("--quiet", is_flag=True, help="Log warnings and errors only.")
def command(
    *,
    config_path: Path | None,
    embedded: bool,
    port_file: Path | None,
    verbose: bool,
    quiet: bool,
) -> int:
    """Capture a server's log, keep scoped binlogs of it, and serve them to replicas.

    Each setting can be given by an environment variable, too: BINLANE_LISTEN_PORT for port of
    [listen]. Ends cleanly at SIGTERM or Ctrl-C; SIGHUP reads the settings again.
    """
    # Modules stay once they are loaded, so that searching them for garbage is for nothing; and
    # nothing here multiplies matrices, for which numpy would start a thread on each core.
    gc.disable()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from binlane.cli.settings_option import config_source  # noqa: PLC0415  # after --help
    from binlane.live.service import logs  # noqa: PLC0415  # as above
    from binlane.live.service.config import Configuration, check_files  # noqa: PLC0415  # as above
    from binlane.live.service.operation import Surroundings  # noqa: PLC0415  # as above
    from binlane.live.service.process import worker_count  # noqa: PLC0415  # as above
    from binlane.live.service.service import serve  # noqa: PLC0415  # as above
    from binlane.live.service.systemd import Manager  # noqa: PLC0415  # as above
    from binlane.live.service.workers.spares import Spares  # noqa: PLC0415  # as above
    from binlane.live.service.workers.worker import work  # noqa: PLC0415  # as above

    gc.freeze()
    gc.enable()
    source = config_source(config_path, is_embedded=embedded)
    level = logs.LogLevel.DEBUG if verbose else logs.LogLevel.WARNING if quiet else None

    def read() -> Configuration:
        configuration = source.read()
        settings = configuration.settings
        if level is None:
            return configuration
        return replace(
            configuration, settings=replace(settings, log=replace(settings.log, level=level))
        )

    def set_log(settings: logs.LogSettings) -> None:
        logs.log_to_stderr(settings, os.environ)

    configuration = read()
    set_log(configuration.settings.log)
    for warning in configuration.warnings:
        logging.getLogger("binlane").warning("%s", warning)
    check_files(configuration.settings)
    # A watchdog's SIGABRT leaves all threads' stacks in the log.
    faulthandler.enable()
    surroundings = Surroundings(
        port_file=port_file,
        manager=Manager.of(os.environ),
        read_again=read,
        set_log=set_log,
        spares=Spares.fork(worker_count(configuration.settings.port), work),
    )
    asyncio.run(serve(configuration.settings, surroundings))
    return 0
