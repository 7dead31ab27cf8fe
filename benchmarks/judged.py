"""What judging a write costs, without sockets, the event loop and routing, as JSON lines.

Sessions log in to a private server through a port in this process, and their first statements are
judged and run there. Then each session's packets are handed to its machine, and the source's replies
with them, as in one turn of the event loop each: CPU microseconds of a statement by the lowest and
the median of many rounds. `relay` is a session at a source that was not set up to be judged, which
pays nothing but the machine.
What routing does with the groups in between is not counted.

    python -m benchmarks.judged [--rounds N] [--only relay row mixed statement] [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import re
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final

import pymysql

from binlane.client.settings import ServerUrl
from binlane.live.capture.settings import SourceSettings
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.judge import Judge
from binlane.live.gateway.relay import Relay
from binlane.live.gateway.settings import GatewaySettings
from binlane.live.gateway.transport import Gateway
from binlane.live.port.attribution_state import ReadGroup
from binlane.live.port.attributions import Attributions
from binlane.live.port.catalog_connections import CatalogConnections
from binlane.live.port.live_catalog import LiveCatalog
from binlane.live.port.port_parts import PortParts
from binlane.live.port.port_session import PortSession
from binlane.live.port.source_marks import Marker
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.execution import Execution, Value
from binlane.log.codec.packets.flags import Capability, Command, ServerStatus
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, frame
from binlane.log.codec.packets.replies import ERR_MARK, EofPacket, OkPacket
from binlane.log.codec.packets.results import ColumnDefinition
from binlane.log.codec.packets.session_state import SessionState
from binlane.log.codec.types import ColumnType, Flavor
from binlane.positions import Gtid, GtidPosition, parse_position
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.session.group_plan import GroupPlan
from binlane.statements.sql.servers import LoggingMode
from tests.judged_port import set_up
from tests.recording_judge import JudgingHandler
from tests.result_sets import encode_result_set
from tests.serve_process import ADMIN, PASSWORD, ServeProcess
from tests.servers import QUICK, execute

_SETTINGS: Final = ("relay", "row", "mixed", "statement")
_SESSIONS: Final = 8
_STATEMENTS: Final = 25
"""Of each session in a round."""
_WARM_ROUNDS: Final = 3
_TEXT: Final = "x" * 60
_DOMAIN: Final = 0
_SERVER_ID: Final = 1


def _insert(number: int) -> str:
    return f"INSERT INTO many (v) VALUES ('{number:010}{_TEXT}')"


def _update(number: int) -> str:
    return f"UPDATE point SET v='{number:010}{_TEXT}' WHERE id={number % 98 + 2}"


def _select(number: int) -> str:
    return f"SELECT v FROM point WHERE id={number % 98 + 2}"


_PREPARED: Final = {
    "prepared_insert": "INSERT INTO many (v) VALUES (?)",
    "prepared_update": "UPDATE point SET v=? WHERE id=?",
    "prepared_select": "SELECT v FROM point WHERE id=?",
}

_NUMBERS: Final = count(101)
_Work = Callable[[int], Sequence[str]]
_WORK: Final[dict[str, _Work]] = {
    "insert": lambda number: [_insert(number)],
    "update": lambda number: [_update(number)],
    "select": lambda number: [_select(number)],
    "transaction": lambda number: [
        "BEGIN",
        _update(number),
        _select(number),
        _insert(number),
        "COMMIT",
    ],
}
_WORK |= {name: lambda _, text=text: [text] for name, text in _PREPARED.items()}  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class _Ready:
    """A session that is at rest.

    Attributes:
        relay: Its machine.
        capabilities: With which the source's packets are written.
        thread_id: Of it at the source.
        is_tracked: Its groups are told.
        prepared: Texts of its prepared statements, by their ids less 1.
    """

    relay: Relay
    capabilities: Capability
    thread_id: int
    is_tracked: bool
    prepared: list[str] = field(default_factory=list)

    def packet(self, text: str) -> bytes:
        """A statement's command; one with `?` is prepared once, and run with some values."""
        if "?" not in text:
            return frame(encode_query(text), 0)
        is_new = text not in self.prepared
        count = text.count("?")
        if is_new:
            self.prepared.append(text)
            self.relay.from_client(frame(bytes((Command.STMT_PREPARE,)) + text.encode(), 0))
            head = struct.pack("<BIHHBH", 0, len(self.prepared), 0, count, 0, 0)
            ends = () if Capability.DEPRECATE_EOF in self.capabilities else (EofPacket().encode(),)
            packets = (head, *[b"?"] * count, *ends)
            self.relay.from_source(b"".join(map(frame, packets, range(1, 9))))
            self.relay.take_to_source(), self.relay.take_to_client()
        values: list[Value] = []
        for found in re.findall(r"\w*[=(]\?", text):
            number = next(_NUMBERS)
            values.append(number % 98 + 2 if found == "id=?" else f"{number:010}{_TEXT}".encode())
        types = [
            ColumnType.LONG if isinstance(one, int) else ColumnType.VAR_STRING for one in values
        ]
        execution = Execution(
            statement_id=self.prepared.index(text) + 1,
            types=types,
            values=values,
            sends_types=is_new,
        )
        return frame(execution.encode(), 0)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=_SETTINGS, default=_SETTINGS)
    parser.add_argument("--work", nargs="*", choices=_WORK, default=tuple(_WORK))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--binlogs", type=int, default=1)
    parser.add_argument(
        "--profile", action="store_true", help="tell functions, with their own time"
    )
    parser.add_argument("--directory", help="where the server and the journal are")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="binlane-bench-", dir=given.directory) as place:
        directory = Path(place)
        with PrivateServer.start(
            directory, name="source", options=(*SOURCE_OPTIONS, *QUICK)
        ) as source:
            set_up(ServeProcess(directory / "serve", source))
            execute(
                source,
                "CREATE DATABASE bench",
                "CREATE TABLE bench.point (id INT PRIMARY KEY, v VARCHAR(100))",
                "CREATE TABLE bench.many (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100))",
                "INSERT INTO bench.point VALUES "
                + ",".join(f"({number}, 'x')" for number in range(100)),
            )
            for setting in given.only:
                asyncio.run(_measure(source, directory / setting, setting, given))


async def _measure(
    source: PrivateServer, directory: Path, setting: str, given: argparse.Namespace
) -> None:
    settings = SourceSettings(
        url=ServerUrl.parse(source.url.replace("root@", f"{ADMIN}@")), password=PASSWORD
    )
    flavor = Flavor.MARIADB
    attributions = Attributions(directory, flavor)
    catalog = LiveCatalog(CatalogConnections(settings))
    await catalog.start()
    mode = LoggingMode.ROW if setting == "relay" else LoggingMode[setting.upper()]
    definitions = tuple(
        Definition(
            name=f"b{number}", scope=Scope.everything(), logging_mode=mode, log_id=number + 1
        )
        for number in range(given.binlogs)
    )
    ((position,),) = execute(source, "SELECT @@GLOBAL.gtid_binlog_pos")
    attributions.begin(parse_position(position, flavor.value))
    parts = PortParts(
        definitions=lambda: definitions,
        catalog=catalog,
        attributions=attributions,
        marker=Marker(settings, flavor),
    )

    async def find() -> PortParts | None:
        return None if setting == "relay" else parts

    judges: list[PortSession] = []

    def judge(session: HandlerSession) -> Judge:
        judges.append(PortSession(session, find))
        return judges[-1]

    gateway = Gateway(
        GatewaySettings(port=0, source_host=source.host, source_port=source.port),
        JudgingHandler(judge),
    )
    await gateway.start()
    try:
        clients = await asyncio.to_thread(_log_in, gateway.port)
        relays = [session._relay for session in gateway._clients.values() if session]  # noqa: SLF001
        sessions = [_ready(relay, one) for relay, one in zip(relays, judges, strict=True)]
        position = execute(source, "SELECT @@GLOBAL.gtid_binlog_pos")[0][0]
        after = parse_position(position, flavor.value)
        attributions.begin(after)
        load = _Load(sessions, attributions, after)
        for work in given.work:
            print(
                json.dumps(
                    {"benchmark": "judged", "setting": setting, "work": work}
                    | load.measured(_WORK[work], given)
                ),
                flush=True,
            )
        for client in clients:
            client._force_close()  # noqa: SLF001
    finally:
        await gateway.stop()
        await catalog.stop()
        parts.marker.close()
        attributions.close()


def _log_in(port: int) -> list[Any]:
    clients = []
    for _number in range(_SESSIONS):
        client = pymysql.connect(
            host="127.0.0.1",
            port=port,
            user="root",
            database="bench",
            autocommit=True,
            ssl_disabled=True,
        )
        with client.cursor() as cursor:
            for write in _WORK.values():
                for text in (text for _ in range(3) for text in write(next(_NUMBERS))):
                    cursor.execute(text.replace("?", "1"))
        clients.append(client)
    return clients


class _Load:
    """Statements of some sessions.

    Args:
        sessions: Whose.
        attributions: What came of them is asked there.
        after: Up to where the source's log was read.
    """

    def __init__(self, sessions: Sequence[_Ready], attributions: Attributions, after: Any) -> None:
        self._sessions = sessions
        self._attributions = attributions
        self._sequence = count(1 + max((one.sequence for one in after.gtids), default=0))

    def measured(self, write: _Work, given: argparse.Namespace) -> dict[str, Any]:
        profile = cProfile.Profile() if given.profile else None
        for _ in range(_WARM_ROUNDS):
            self._round(write, None)
        taken = [self._round(write, profile) for _ in range(given.rounds)]
        if profile is not None:
            pstats.Stats(profile).sort_stats("tottime").print_stats(60)
        statements = _SESSIONS * _STATEMENTS * len(write(0))
        return {
            "lowest_us": round(min(taken) * 1e6 / statements, 1),
            "median_us": round(median(taken) * 1e6 / statements, 1),
        }

    def _round(self, write: _Work, profile: cProfile.Profile | None) -> float:
        return sum(self._lap(write, profile) for _ in range(_STATEMENTS))

    def _lap(self, write: _Work, profile: cProfile.Profile | None) -> float:
        """One unit of work of each session, and what routing does with it; CPU seconds of the former."""
        taken, numbers = 0.0, [next(_NUMBERS) for _ in self._sessions]
        for place in range(len(write(0))):
            texts = [write(number)[place] for number in numbers]
            taken += self._turn(texts, is_open=0 < place < len(write(0)) - 1, profile=profile)
        return taken

    def _turn(
        self, texts: Sequence[str], *, is_open: bool, profile: cProfile.Profile | None
    ) -> float:
        """One statement of each session."""
        work = []
        groups: list[ReadGroup] = []
        for session, text in zip(self._sessions, texts, strict=True):
            gtid = None
            if not is_open and text.startswith(("INSERT", "UPDATE", "COMMIT")):
                gtid = Gtid(_DOMAIN, _SERVER_ID, next(self._sequence))
            packet = session.packet(text)
            reply = _reply(session, text, gtid, next(_NUMBERS), is_open=is_open)
            work.append((session.relay, packet, reply))
            if session.is_tracked and gtid is not None:
                groups.append(ReadGroup(gtid, session.thread_id, is_commit=True))
        if profile is not None:
            profile.enable()
        before = time.thread_time()
        for relay, packet, reply in work:
            relay.from_client(packet)
            sent = relay.take_to_source()
            relay.take_to_client()
            relay.from_source(reply)
            relay.take_to_source()
            answer = relay.take_to_client()
        taken = time.thread_time() - before
        if profile is not None:
            profile.disable()
        assert relay.question is None, (relay.question, texts)
        assert (sent, answer[FRAME_HEADER_LENGTH] < ERR_MARK) == (packet, True), (sent, answer)
        if groups:
            self._attributions.read(groups, GtidPosition((groups[-1].gtid,)))  # type: ignore[arg-type]  # MariaDB's
            for group in groups:
                found = self._attributions.find(group)
                assert isinstance(found, GroupPlan), found
        return taken


def _ready(relay: Relay, judge: PortSession) -> _Ready:
    # The source is told that a followed client wants to hear of the session's state.
    tracking = Capability.SESSION_TRACK if relay.is_judged else Capability(0)
    return _Ready(
        relay,
        relay.capabilities | tracking,
        judge._client.thread_id,  # noqa: SLF001
        judge.hides_gtids,
    )


def _reply(session: _Ready, text: str, gtid: Gtid | None, number: int, *, is_open: bool) -> bytes:
    """The source's reply."""
    status = ServerStatus.AUTOCOMMIT
    if is_open or text == "BEGIN":
        status |= ServerStatus.IN_TRANSACTION
    if text.startswith("SELECT"):
        payloads = encode_result_set(
            [ColumnDefinition(name="v", type_code=ColumnType.VAR_STRING)],
            [[_TEXT]],
            capabilities=session.capabilities,
            status=status,
        )
        return b"".join(frame(payload, place) for place, payload in enumerate(payloads, 1))
    state = b""
    if session.is_tracked and gtid is not None:
        status |= ServerStatus.SESSION_STATE_CHANGED
        state = SessionState(variables={"last_gtid": str(gtid)}).encode()
    is_write, is_update = text.startswith(("INSERT", "UPDATE")), text.startswith("UPDATE")
    ok = OkPacket(
        affected_rows=int(is_write),
        insert_id=number if text.startswith("INSERT") else 0,
        status=status,
        info=b"Rows matched: 1  Changed: 1  Warnings: 0" if is_update else b"",
        session_state=state,
    )
    return frame(ok.encode(session.capabilities), 1)


if __name__ == "__main__":
    main()
