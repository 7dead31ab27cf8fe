"""The options of `cat`: those of mariadb-binlog and mysqlbinlog, and binlane's own.

Only what they are called, take and say; `cat_request` says what they mean together.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click

from binlane.cli.cat_values import Gtids, Ids, PositionValue, RewriteValue, Time
from binlane.cli.client_options import GroupedOption
from binlane.cli.filter_options import filter_options

_NO_FILES: Final = "binlane reads no option files; give its options on the command line"
_NO_TLS_SETTING: Final = "not built; --ssl-mode, --ssl-ca, --ssl-cert and --ssl-key are"

REFUSED: Final = MappingProxyType(
    {
        "character-sets-dir": "binlane brings its own character sets",
        "plugin-dir": "binlane loads no client plugins; it logs in by mysql_native_password and "
        "caching_sha2_password",
        "default-auth": "the server says how an account logs in",
        "defaults-file": _NO_FILES,
        "defaults-extra-file": _NO_FILES,
        "defaults-group-suffix": _NO_FILES,
        "print-defaults": _NO_FILES,
        "login-path": "binlane reads no login file; give --user, --host and --password-file",
        "debug": "this is no debug build; `binlane --debug cat` shows tracebacks",
        "-#": "this is no debug build; `binlane --debug cat` shows tracebacks",
        "compress": "the connection to a server is not compressed",
        "-C": "the connection to a server is not compressed",
        "compression-algorithms": "the connection to a server is not compressed",
        "zstd-compression-level": "the connection to a server is not compressed",
        "server-public-key-path": "the key is asked of the server; use TLS where it is not trusted",
        "ssl-capath": _NO_TLS_SETTING,
        "ssl-cipher": _NO_TLS_SETTING,
        "ssl-crl": _NO_TLS_SETTING,
        "ssl-crlpath": _NO_TLS_SETTING,
        "ssl-fips-mode": _NO_TLS_SETTING,
        "ssl-session-data": _NO_TLS_SETTING,
        "ssl-session-data-continue-on-failed-reuse": _NO_TLS_SETTING,
        "tls-version": _NO_TLS_SETTING,
        "tls-ciphersuites": _NO_TLS_SETTING,
        "tls-sni-servername": _NO_TLS_SETTING,
    }
)
"""Options of the servers' tools that binlane has not, and why."""

IGNORED: Final = (
    "no-defaults",
    "no-login-paths",
    "debug-check",
    "debug-info",
    "get-server-public-key",
)
"""Options of theirs that have nothing to change here."""

_WHAT: Final = "What to print"
_TABLES: Final = "Tables (binlane's own: by what an event writes)"
_TEXT: Final = "How to print"
_ROWS: Final = "What rows mean"
_DAMAGE: Final = "Files"
_REMOTE: Final = "From a server"


def _option(group: str, *names: str, **attributes: Any) -> GroupedOption:
    return GroupedOption(names, group=group, **attributes)


def _flag(group: str, *names: str, **attributes: Any) -> GroupedOption:
    return _option(group, *names, is_flag=True, **attributes)


OPTIONS: Final = (
    _option(
        _WHAT,
        "-j",
        "--start-position",
        type=PositionValue(),
        metavar="POS|GTIDS",
        help="Start at this byte of the first file, or behind these MariaDB GTIDs.",
    ),
    _option(
        _WHAT,
        "--stop-position",
        type=PositionValue(),
        metavar="POS|GTIDS",
        help="Stop before this byte of the last file, or behind these MariaDB GTIDs.",
    ),
    _option(
        _WHAT,
        "--start-datetime",
        type=Time(),
        metavar="TIME",
        default=0,
        help="Start with the first event that is not older; local time, or ISO 8601 with a zone.",
    ),
    _option(
        _WHAT,
        "--stop-datetime",
        type=Time(),
        metavar="TIME",
        help="Stop before the first event that is not older.",
    ),
    _option(
        _WHAT,
        "-o",
        "--offset",
        type=click.IntRange(min=0),
        metavar="N",
        default=0,
        help="Skip the first N events.",
    ),
    _option(
        _WHAT,
        "-d",
        "--database",
        metavar="NAME",
        help="Statements with this default database, and rows of its tables.",
    ),
    _option(
        _WHAT,
        "-T",
        "--table",
        metavar="NAME",
        help="Only rows of tables of this name.",
    ),
    _option(
        _WHAT,
        "--do-server-ids",
        "--server-id",
        type=Ids(),
        metavar="IDS",
        help="Only events that these servers first wrote (also --server-id).",
    ),
    _option(
        _WHAT,
        "--ignore-server-ids",
        type=Ids(),
        metavar="IDS",
        help="No events of these servers.",
    ),
    _option(
        _WHAT,
        "--server-id-bits",
        type=click.IntRange(7, 32),
        metavar="N",
        default=32,
        help="Number of bits of a server id that count.",
    ),
    _option(
        _WHAT,
        "--do-domain-ids",
        type=Ids(),
        metavar="IDS",
        help="Only these MariaDB domains.",
    ),
    _option(
        _WHAT,
        "--ignore-domain-ids",
        type=Ids(),
        metavar="IDS",
        help="Not these domains.",
    ),
    _option(
        _WHAT,
        "--include-gtids",
        type=Gtids(),
        metavar="SET",
        help="Only these MySQL GTIDs.",
    ),
    _option(_WHAT, "--exclude-gtids", type=Gtids(), metavar="SET", help="Not these MySQL GTIDs."),
    _flag(
        _WHAT,
        "--gtid-strict-mode/--skip-gtid-strict-mode",
        default=True,
        help="With GTIDs as start or stop: an error if sequence numbers do not grow. [on]",
    ),
    _option(
        _WHAT,
        "--do-event",
        multiple=True,
        metavar="TYPE",
        help="Only events of this type, as --format=json names it, or statements of this kind, such "
        "as insert, create-table or ddl; repeatable.",
    ),
    *filter_options(GroupedOption, group=_TABLES),
    _option(
        _TEXT,
        "-v",
        "--verbose",
        count=True,
        help="Rows as commented SQL; -vv with column types.",
    ),
    _option(
        _TEXT,
        "--format",
        "format_",
        type=click.Choice(["text", "json", "sql"]),
        default="text",
        show_default=True,
        help="text: as the server's own tool; json: an object a line; sql: rows as statements.",
    ),
    _flag(_TEXT, "-B", "--flashback", help="SQL that undoes the changes, the last change first."),
    _flag(_TEXT, "--summary", help="Contents of the log: times, tables, sizes."),
    _option(
        _TEXT,
        "--html",
        "html_file",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="With --summary: also write a page with plots.",
    ),
    _option(
        _TEXT,
        "-r",
        "--result-file",
        metavar="FILE",
        help="Write to FILE, whole or not at all. With --raw: prefix of the file names.",
    ),
    _option(
        _TEXT,
        "--base64-output",
        type=click.Choice(["auto", "never", "decode-rows"], case_sensitive=False),
        metavar="WHEN",
        default="auto",
        help="auto: BINLOG statements for rows; never: none, rows are an error; decode-rows: "
        "none, rows as comments with -v.",
    ),
    _flag(_TEXT, "-s", "--short-form", help="Only statements: no rows, no comments."),
    _flag(_TEXT, "-H", "--hexdump", help="Each event's bytes as well."),
    _flag(
        _TEXT,
        "--print-row-count/--skip-print-row-count",
        default=True,
        help="MariaDB: rows of each statement, with -v. [on]",
    ),
    _flag(
        _TEXT,
        "--print-row-event-positions/--skip-print-row-event-positions",
        default=True,
        help="MariaDB: positions of row events. [on]",
    ),
    _flag(_TEXT, "--print-table-metadata", help="The log's metadata of columns."),
    _flag(
        _TEXT, "--skip-annotate-row-events", help="MariaDB: no texts of statements logged as rows."
    ),
    _flag(_TEXT, "--skip-gtids", help="MySQL: no GTIDs; a server gives new ones."),
    _option(_TEXT, "--set-charset", metavar="NAME", help="SET NAMES at the beginning."),
    _option(
        _TEXT,
        "--rewrite-db",
        "rewrites",
        type=RewriteValue(),
        multiple=True,
        metavar="FROM->TO",
        help="Another name for a database; repeatable.",
    ),
    _flag(_TEXT, "-D", "--disable-log-bin", help="The server that runs the text does not log it."),
    _flag(_TEXT, "-i", "--idempotent", help="MySQL: existing rows are no error."),
    _flag(
        _TEXT,
        "--require-row-format",
        help="MySQL: a change that is not logged as rows is an error.",
    ),
    _option(
        _TEXT,
        "-l",
        "--local-load",
        "load_directory",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory for the files of LOAD DATA. [the system's temporary directory]",
    ),
    _option(
        _TEXT,
        "--binlog-row-event-max-size",
        type=click.IntRange(min=256),
        metavar="N",
        expose_value=False,
        help="Without effect: rows are printed as they were logged.",
    ),
    _option(
        _ROWS,
        "--schema",
        metavar="FILE|SERVER",
        help="Names and types of columns: CREATE statements, or a server "
        "(mariadb://USER@HOST:PORT).",
    ),
    _option(
        _ROWS,
        "--encryption-keys",
        metavar="FILE",
        help="Keys of encrypted logs: MariaDB's file_key_management file, or MySQL's "
        "component_keyring_file.",
    ),
    _flag(
        _DAMAGE,
        "--force",
        help="After damage go on with the next event group; the exit code is still 1.",
    ),
    _flag(
        _DAMAGE,
        "-F",
        "--force-if-open/--skip-force-if-open",
        default=True,
        help="Also read a file that was not closed. [on]",
    ),
    _flag(
        _DAMAGE,
        "-f",
        "--force-read/--skip-force-read",
        expose_value=False,
        help="Always on: events of unknown types are printed as such.",
    ),
    _flag(
        _DAMAGE,
        "-c",
        "--verify-binlog-checksum/--skip-verify-binlog-checksum",
        expose_value=False,
        help="Always on: every checksum is verified.",
    ),
    _option(
        _DAMAGE,
        "--open-files-limit",
        type=int,
        metavar="N",
        expose_value=False,
        help="Without effect: one file is open at a time.",
    ),
    _flag(_DAMAGE, "--quiet", help="No notes and no progress on standard error."),
    _flag(
        _REMOTE,
        "-R",
        "--read-from-remote-server",
        help="FILE is a file of the server's log.",
    ),
    _option(
        _REMOTE,
        "--read-from-remote-source",
        "--read-from-remote-master",
        "remote_kind",
        type=click.Choice(["BINLOG-DUMP-NON-GTIDS", "BINLOG-DUMP-GTIDS"], case_sensitive=False),
        metavar="HOW",
        help="As -R; HOW is BINLOG-DUMP-NON-GTIDS, or BINLOG-DUMP-GTIDS, where MySQL itself "
        "leaves --exclude-gtids out.",
    ),
    _option(_REMOTE, "-h", "--host", metavar="NAME", default="localhost", help="[localhost]"),
    _option(
        _REMOTE,
        "-P",
        "--port",
        type=click.IntRange(0, 65535),
        metavar="N",
        default=0,
        help="[3306]",
    ),
    _option(_REMOTE, "-S", "--socket", metavar="PATH", help="The server's Unix socket."),
    _option(
        _REMOTE,
        "--protocol",
        type=click.Choice(["tcp", "socket"], case_sensitive=False),
        help="Default: a socket if one is given, else TCP.",
    ),
    _option(_REMOTE, "--bind-address", metavar="ADDRESS", help="Connect from this address."),
    _option(_REMOTE, "-u", "--user", metavar="NAME", help="[your name on this system]"),
    _option(
        _REMOTE,
        "-p",
        "--password",
        metavar="[=WORD]",
        help="Without a word the command asks; default: MYSQL_PWD.",
    ),
    _flag(_REMOTE, "--ask-password", hidden=True, help="What --password without a word means."),
    _option(
        _REMOTE,
        "--password-file",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Its first line is the password.",
    ),
    _option(
        _REMOTE,
        "--ssl-mode",
        type=click.Choice(
            ["DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"],
            case_sensitive=False,
        ),
        metavar="MODE",
        help="DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY. [PREFERRED]",
    ),
    _flag(_REMOTE, "--ssl/--skip-ssl", default=None, help="REQUIRED or DISABLED."),
    _flag(
        _REMOTE,
        "--ssl-verify-server-cert/--skip-ssl-verify-server-cert",
        help="VERIFY_IDENTITY.",
    ),
    _option(_REMOTE, "--ssl-ca", metavar="FILE", help="Certificate that signed the server's."),
    _option(_REMOTE, "--ssl-cert", metavar="FILE", help="The client's own certificate."),
    _option(_REMOTE, "--ssl-key", metavar="FILE", help="Its key."),
    _flag(_REMOTE, "-t", "--to-last-log", help="Go on up to the end of the server's last file."),
    _flag(_REMOTE, "--stop-never", help="Then wait for more."),
    _option(
        _REMOTE,
        "--connection-server-id",
        "--stop-never-slave-server-id",
        type=click.IntRange(0, 2**32 - 1),
        metavar="ID",
        help="Server id of this client; with --stop-never no replica may have it. [random]",
    ),
    _flag(
        _REMOTE,
        "--raw",
        help="Write the files themselves, named as on the server.",
    ),
)
