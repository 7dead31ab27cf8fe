"""Which files PURGE BINARY LOGS takes, and which stay since somebody reads them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.store import Store
from binlane.errors import DefinitionError
from binlane.live.answers.purging import PurgePlan, plan_before, plan_to
from tests.groups import TIMESTAMP, add, create, transaction


@pytest.fixture
def live(tmp_path: Path) -> LiveBinlog:
    """A binlog of six files, one an hour."""
    with Store.open(tmp_path) as store:
        binlog = create(store)
        for hour in range(1, 6):
            add(binlog, [transaction(hour)])
            binlog.rotate(TIMESTAMP + hour * 3600)
        return LiveBinlog(binlog)


def test_files_before_a_name_and_a_time(live: LiveBinlog) -> None:
    assert plan_to(live, "orders.000001") == PurgePlan(binlog="orders")
    assert plan_to(live, "orders.000003") == PurgePlan(binlog="orders", first="orders.000003")
    assert plan_before(live, TIMESTAMP + 3 * 3600) == plan_to(live, "orders.000003")
    assert plan_before(live, TIMESTAMP) == PurgePlan(binlog="orders")
    assert plan_before(live, time.time() + 10**9) == plan_to(live, "orders.000006")
    with pytest.raises(DefinitionError) as raised:
        plan_to(live, "orders.000009")
    assert raised.value.errno == 1373


def test_what_is_read_stays_with_all_behind_it_and_a_warning(live: LiveBinlog) -> None:
    with live.reading("orders.000002"), live.reading("orders.000002"):
        with live.reading("orders.000004"):
            assert live.files_read == {"orders.000002", "orders.000004"}
        plan = plan_to(live, "orders.000005")
        assert plan.first == "orders.000002"
        assert plan.warning == (
            "file orders.000002 was not purged because it was being read, purged only 1 out of 4 "
            "files"
        )
        assert plan_to(live, "orders.000002") == PurgePlan(binlog="orders", first="orders.000002")
    assert not live.files_read
    assert not plan_to(live, "orders.000005").warning
    with live.reading("orders.000001"):
        assert plan_to(live, "orders.000005").first is None
