"""One binlog's verdicts on tables and texts of a log, by number, as kernels take them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from binlane.binlogs.routing.numbered_texts import NumberedTexts
from binlane.binlogs.routing.payload_cuts import MadeBodies, PayloadCut
from binlane.binlogs.routing.query_events import NO_TABLES, PLAIN, THREAD_AND_TIME, confined
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.run_xa import XA_SHAPES, XaStates
from binlane.binlogs.routing.table_bits import TableBits
from binlane.binlogs.routing.texts import SHAPES_MAX
from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.grouping.scanner import Numbers
from binlane.log.kernels import route_layout as lay
from binlane.statements.scope.definition import Definition

if TYPE_CHECKING:
    from binlane.binlogs.routing.run_ddl import BinlogDdl, RunDdl


def query_of(key: bytes) -> QueryEvent:
    """The event of a statement, by its body behind thread and time."""
    return QueryEvent.decode(Reader(bytes(THREAD_AND_TIME) + key), PLAIN)


@dataclass(slots=True)
class BinlogView:
    """One binlog's verdicts on tables and texts.

    Attributes:
        definition: Definition of the binlog whose verdicts these are.
        is_whole: True if it is unscoped.
        asks: True if it is, and statements are for the reference all the same.
        has_tables_info: True if its file has statements with tables info.
        converts: True if its file or the run has, so that statements are converted.
        memory: Routing's memory of the groups before, as verdicts were given by it.
        tables: The binlog's bits for the tables of the log.
        ddl: What becomes of statements on objects; None before any came, or if it is unscoped.
        verdicts: The verdict on each text, by its number.
        has_xa: True if the run has XA transactions.
        xa: States of the run's XA transactions in the binlog.
        cuts: The cut of each shape of payloads of which a part stays, by its number.
        made: Bodies that were made for events of the run.
    """

    definition: Definition
    is_whole: bool
    asks: bool = False
    has_tables_info: bool = False
    converts: bool = False
    memory: Memory | None = None
    tables: TableBits = field(init=False)
    ddl: BinlogDdl | None = None
    verdicts: Numbers = field(
        default_factory=lambda: np.zeros((lay.VERDICT_SIZE, SHAPES_MAX), np.int64)
    )
    has_xa: bool = False
    xa: XaStates = field(default_factory=XaStates)
    cuts: dict[int, PayloadCut] = field(default_factory=dict)
    made: MadeBodies = field(default_factory=MadeBodies)

    def __post_init__(self) -> None:
        """Begin without tables."""
        self.tables = TableBits(self.definition.scope)

    def begin_ddl(self, run: RunDdl, payloads: int, *, has_others: bool, has_rows: bool) -> None:
        """Take the statements on objects of a run that has so many payloads, as `BinlogDdl.begin`."""
        from binlane.binlogs.routing.run_ddl import BinlogDdl  # noqa: PLC0415  # parses SQL

        if self.ddl is None:
            self.ddl = BinlogDdl(self.definition, self.tables)
        self.made.forget(payloads, len(run.texts))
        self.ddl.begin(run, self.made, has_others=has_others, has_rows=has_rows)

    def decide_ddl(self, groups: range, memory: Memory) -> None:
        """Say what becomes of the statements on objects in some groups, as `BinlogDdl.decide`."""
        if self.ddl is None:
            return
        if self.converts:
            self.ddl.leave()
        else:
            self.ddl.decide(groups, memory)

    def judge_bracket(self, number: int, body: QueryEvent, texts: NumberedTexts) -> None:
        """Say how a bracket of groups of rows stands in the binlog's file: it concerns no table."""
        inside = confined(body, self.definition.scope, None)
        kind = int(texts.table[lay.TEXT_KIND, number])
        is_savepoint, is_xa = kind == lay.SAVEPOINT, kind == lay.XA
        is_odd = is_xa and body.query not in XA_SHAPES
        if is_odd or (kind != lay.CONTEXT and self.has_tables_info):
            self.verdicts[lay.ACTION, number] = lay.BY_REFERENCE
            return
        inside = inside.in_form(NO_TABLES if self.has_tables_info else None)
        self.verdicts[lay.ACTION, number] = lay.COPY
        if is_savepoint or inside != body:
            inside = replace(inside, query=b"") if is_xa else inside
            context = inside.encode(PLAIN)[THREAD_AND_TIME:]
            action = lay.PUT_HEAD if is_xa else lay.PUT_SAVEPOINT if is_savepoint else lay.PUT
            self.verdicts[:, number] = action, texts.keep(context), len(context)

    def judge(self, number: int, texts: NumberedTexts, format_: Format) -> None:
        """Say what a scoped binlog makes of all that has a shape, with its memory as it is.

        Args:
            number: The number of the shape.
            texts: The texts and payloads that are known.
            format_: Format of the FORMAT_DESCRIPTION before them.
        """
        from binlane.binlogs.routing.statement_shapes import (  # noqa: PLC0415  # parses SQL
            part_of,
            payload_part,
        )

        assert self.memory is not None, "the binlog is known"
        event = texts.payloads.get(number)
        if event is not None:
            stays = payload_part(event, self.definition, self.memory, format_)
            action = lay.COPY if stays else lay.DROP
            if isinstance(stays, PayloadCut):
                action, self.cuts[number] = lay.PUT_BODY, stays
                self.verdicts[lay.PLACE_START, number] = stays.texts_left
            is_for_route = stays is None or self.converts
            self.verdicts[lay.ACTION, number] = lay.BY_REFERENCE if is_for_route else action
            return
        body = query_of(texts.key(number))
        part = part_of(body, self.definition, self.memory, format_)
        self.verdicts[lay.ACTION, number] = lay.COPY
        if part is None:
            self.verdicts[lay.ACTION, number] = lay.DROP
        elif isinstance(part, str) or self.converts:
            # With tables info each text would tell its own tables.
            self.verdicts[lay.ACTION, number] = lay.BY_REFERENCE
        elif part != body:
            head = replace(part, query=b"").encode(PLAIN)[THREAD_AND_TIME:]
            self.verdicts[:, number] = lay.PUT_HEAD, texts.keep(head), len(head)
