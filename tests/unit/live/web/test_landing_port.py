from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from binlane.errors import ConfigError
from binlane.live.web.landing_card import landing_metrics, landing_port
from binlane.live.web.prometheus import render
from binlane.live.web.settings import HttpSettings
from binlane.tables.landing.landing_progress import LandingProgress, TableReport


def progress() -> LandingProgress:
    return LandingProgress(
        tables={
            'shop."q"': TableReport(
                rows=5, logged=7, left_out={"of a group": 2}, invalid_dates=1, committed=1700.25
            ),
            "shop.gone": TableReport(rows=2, why_not="its columns changed"),
        },
        batches=3,
        size_bytes=100,
        bytes_behind=50,
        last_timestamp=1000,
    )


def test_metrics() -> None:
    lines = render(landing_metrics(progress(), now=1002.5)).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "binlane_land_behind_seconds 2.5",
        "binlane_land_behind_bytes 50",
        "binlane_land_bytes_total 100",
        "binlane_land_batches_total 3",
        r'binlane_land_rows_total{table="shop.\"q\""} 5',
        'binlane_land_rows_total{table="shop.gone"} 2',
        r'binlane_land_logged_rows_total{table="shop.\"q\""} 7',
        'binlane_land_logged_rows_total{table="shop.gone"} 0',
        r'binlane_land_left_out_rows_total{table="shop.\"q\"",reason="of a group"} 2',
        r'binlane_land_invalid_dates_total{table="shop.\"q\""} 1',
        'binlane_land_invalid_dates_total{table="shop.gone"} 0',
        "binlane_land_reference_rows_total 0",
        'binlane_land_given_up{table="shop.gone"} 1',
        r'binlane_land_committed_timestamp_seconds{table="shop.\"q\""} 1700.25',
    ]


def test_nothing_is_behind_where_nothing_more_is_there() -> None:
    done = progress()
    done.caught_up = 2000.0
    assert "binlane_land_behind_seconds 0.0" in render(landing_metrics(done, now=9999.0))


def test_the_port_answers_until_it_is_closed() -> None:
    with landing_port(HttpSettings(port=0), progress) as port:
        for path in ("metrics", "healthz"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}") as answer:
                assert answer.status == 200
        with (
            pytest.raises(ConfigError, match="is taken"),
            landing_port(HttpSettings(port=port), progress),
        ):
            pass
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics")


def test_a_page_that_has_its_name_lead_here_reads_nothing() -> None:
    with landing_port(HttpSettings(port=0), progress) as port:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/metrics", headers={"Host": "evil.example"}
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(asked)
        with caught.value as refused:
            assert refused.code == 403
