"""The memory of the streaming application over a longer time, at a constant rate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import psutil

from benchmarks.measure import measured, resident
from benchmarks.streams.load import send_at
from benchmarks.streams.project import BRONZE, GOLD, SILVER, write_chain
from benchmarks.streams.results import Moment, Pace, Steady
from benchmarks.streams.running import application
from benchmarks.streams.sections import Bench, location, wait_shown
from spark_jobs.settings import Settings
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.storage import log

MOMENTS = 120
_SHORTEST_SECONDS = 1.0
# Enables Spark's metrics of its JVM.
GAUGES = {"spark.metrics.conf.driver.source.jvm.class": "org.apache.spark.metrics.source.JvmSource"}
# Names of the JVM's old generation, by garbage collector.
_OLD = ("Tenured", "Old")


def steady(bench: Bench, pace: Pace, *, rate: int, minutes: float) -> Steady:
    """Events at a constant rate through all layers, and the memory in each minute.

    Raises:
        VoidError: the number of events in a layer differs from those sent.
    """
    own = Bench(bench.spark.model_copy(update={"conf": {**bench.spark.conf, **GAUGES}}), bench.tell)
    with own.project(pace, write_chain) as settings, application(settings) as process:
        bench.tell(f"memory at {pace}: {rate:,} events a second for {minutes:g} minutes")
        moments: list[Moment] = []

        def through() -> int:
            with ThreadPoolExecutor(1) as pool:
                sending = pool.submit(send_at, settings.kafka, rate=rate, seconds=60 * minutes)
                began = time.monotonic()
                pause = max(_SHORTEST_SECONDS, 60 * minutes / MOMENTS)
                while not sending.done():
                    moments.append(_moment(settings, process, time.monotonic() - began))
                    time.sleep(pause)
                return sending.result()

        sent, cost = measured(through, process=process)
        wait_shown(settings, sent)
    return Steady(pace=pace, rate=rate, events=sent, cost=cost, moments=moments)


def _moment(settings: Settings, process: psutil.Process, seconds: float) -> Moment:
    used, old = heap(gauges(settings))
    return Moment(
        seconds=round(seconds, 1),
        resident=resident(process),
        heap=used,
        old=old,
        files=sum(
            log.size(place).files
            for place in (location(settings, table) for table in (BRONZE, SILVER, GOLD))
            if log.table_version(place) is not None
        ),
    )


def gauges(settings: Settings) -> Mapping[str, Any]:
    """The gauges of the application's Spark; empty if it does not answer."""
    url = f"http://{LOOPBACK}:{settings.ports.streams_ui}/metrics/json/"
    with suppress(httpx.HTTPError, ValueError), httpx.Client(trust_env=False) as client:
        found: Mapping[str, Any] = client.get(url, timeout=5).json()["gauges"]
        return found
    return {}


def heap(found: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Used bytes of the heap, and of its old generation after a collection.

    >>> heap({"x.driver.jvm.heap.used": {"value": 7}})
    (7, None)
    >>> heap({"x.driver.jvm.pools.Tenured-Gen.used-after-gc": {"value": 5}})
    (None, 5)
    """
    used = old = None
    for name, gauge in found.items():
        if name.endswith(".jvm.heap.used"):
            used = int(gauge["value"])
        if name.endswith(".used-after-gc") and any(word in name for word in _OLD):
            old = int(gauge["value"])
    return used, old
