"""The results as JSON, as a Markdown page with the targets, and as a plot."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TypeVar

from benchmarks.measure import Cost
from benchmarks.plot import mark, text
from benchmarks.streams import steady_report
from benchmarks.streams.results import Chain, Ingest, Peer, Results, Section, Spread, Upserts
from benchmarks.streams.upserts import OURS

NAME = "streams"
INGEST_AIM = 150_000
# Seconds, at 10,000 events a second: the percentile that counts, and its bound.
AIMS = {"bronze": ("p50", 1.5), "silver": ("p95", 5.0), "gold": ("p95", 10.0)}
UPSERT_AIM = 3.0

T = TypeVar("T")


def write_report(results: Results, *, data: Path, papers: Path) -> list[Path]:
    """Write all three.

    Args:
        results: of all sections, including older ones.
        data: the folder of the JSON.
        papers: the folder of page and plot.
    """
    files = {
        data / f"{NAME}.json": results.model_dump_json(indent=1) + "\n",
        papers / f"{NAME}.md": markdown(results, picture=f"{NAME}.svg"),
    }
    if results.latency is not None:
        files[papers / f"{NAME}.svg"] = plot(results.latency.found)
    if results.memory is not None:
        files[papers / f"{NAME}-memory.svg"] = steady_report.plot(results.memory.found)
    for file, words in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(words, encoding="utf-8")
    return list(files)


def markdown(results: Results, *, picture: str) -> str:
    """The page of all sections that were measured."""
    lines = [
        "# Streams, measured",
        "",
        *_filled(
            "Written by `make bench-streams`; [how it is measured](README.md). Paces are the "
            "triggers of bronze, silver and continuous gold. CPU is that of the streaming "
            "application; *others* is what the rest of the machine used meanwhile, the broker "
            "and the sender of the events among them, in cores."
        ),
    ]
    if results.ingest is not None:
        lines += _ingest(results.ingest)
    if results.latency is not None:
        lines += _latency(results.latency, picture)
    if results.upserts is not None:
        lines += _upserts(results.upserts)
    if results.peer is not None:
        lines += _peer(results.peer)
    if results.memory is not None:
        lines += _heading("Memory at a steady rate", results.memory)
        lines += steady_report.page(results.memory.found, picture=f"{NAME}-memory.svg")
    return "\n".join([*lines, ""])


def plot(chains: list[Chain]) -> str:
    """From the median to the 95th percentile of each layer's delay, as SVG."""
    left, top, row, width, right = 210, 46, 22, 520, 50
    bars = [
        (f"{chain.pace}, {layer}", at, getattr(chain, layer))
        for chain in chains
        for at, layer in enumerate(AIMS)
    ]
    most = max(spread.p95 for *_, spread in bars)
    height = top + row * len(bars) + 34
    size = f'width="{left + width + right}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        text(12, 20, "Seconds from Kafka to each layer: median to 95th percentile", "start"),
    ]
    for tick in range(5):
        x = left + width * tick / 4
        parts.append(f'<path d="M{x:.1f} {top - 8}V{height - 30}" stroke="#ddd" fill="none"/>')
        parts.append(text(x, height - 14, f"{most * tick / 4:.1f}", "middle"))
    for index, (name, at, spread) in enumerate(bars):
        y = top + row * index + 6
        start, end = (left + width * one / most for one in (spread.p50, spread.p95))
        parts.append(text(left - 14, y + 4, name, "end"))
        parts.append(f'<path d="M{start:.1f} {y}H{end:.1f}" stroke="#888" stroke-width="2"/>')
        parts += [mark(start, y, at), mark(end, y, at)]
    return "\n".join([*parts, "</svg>", ""])


def _heading(title: str, section: Section[T]) -> Iterator[str]:
    facts = section.facts
    loads = " and ".join(f"{one[0]:.1f}" for one in facts.load)
    used = ", ".join(f"{name} {number}" for name, number in facts.versions.items())
    yield from ("", f"## {title}", "")
    for fact in (
        f"{facts.started_at} to {facts.finished_at}, commit {facts.commit}",
        (
            f"{facts.processor}, {facts.cores} cores, {facts.memory / 2**30:.0f} GiB, "
            f"load {loads} at start and end"
        ),
        used,
        f"JVM: heap {facts.heap}, options `{facts.java_options}`",
    ):
        yield from _filled(fact, bullet="- ")
    yield ""


def _ingest(section: Section[list[Ingest]]) -> Iterator[str]:
    yield from _heading("Kafka to bronze", section)
    size = section.found[0].event_bytes
    yield from _filled(
        f"A topic that is full, events of {size} bytes, one partition. The aim is {INGEST_AIM:,} "
        "events a second. The first batch falls into the start and is left out."
    )
    yield ""
    yield "| pace | events | events/s | of the aim | CPU µs an event | others |"
    yield "|---|---:|---:|---:|---:|---:|"
    for one in section.found:
        cpu = one.cost.cpu / one.events * 1e6
        yield (
            f"| {one.pace} | {one.events:,} | {one.rate:,.0f} | {one.rate / INGEST_AIM:.0%} "
            f"| {cpu:.1f} | {one.cost.others:.2f} |"
        )


def _latency(section: Section[list[Chain]], picture: str) -> Iterator[str]:
    yield from _heading("Kafka to each layer's commit", section)
    yield f"![Seconds from Kafka to each layer]({picture})"
    yield ""
    told = [f"{layer} {key} ≤ {bound:g} s" for layer, (key, bound) in AIMS.items()]
    yield from _filled(
        "Seconds from a record's time in Kafka until the commit that holds it is in the log. "
        f"Aims at 10,000 events/s: {', '.join(told)}; **bold** where one is reached."
    )
    yield ""
    yield (
        "| pace | events/s | wanted | bronze p50 | p95 | silver p50 | p95 | gold p50 | p95 "
        "| CPU cores | others |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for one in section.found:
        delays = [
            _against_aim(layer, key, getattr(one, layer))
            for layer in AIMS
            for key in ("p50", "p95")
        ]
        yield (
            f"| {one.pace} | {one.rate:,.0f} | {one.wanted:,} | {' | '.join(delays)} "
            f"| {one.cost.cpu / one.cost.wall:.2f} | {one.cost.others:.2f} |"
        )
    yield from ("", "At rest, and what a run left behind:", "")
    yield ("| pace | idle CPU s a minute | run s | peak GiB | growth MiB/min | commits | files |")
    yield "|---|---:|---:|---:|---:|---|---|"
    for one in section.found:
        yield (
            f"| {one.pace} | {60 * one.idle.cpu / one.idle.wall:.2f} | {one.cost.wall:.0f} "
            f"| {one.memory.peak / 2**30:.2f} | {one.memory.growth_per_minute / 2**20:+.1f} "
            f"| {_counts(one.commits)} | {_counts(one.files)} |"
        )


def _filled(words: str, *, bullet: str = "") -> list[str]:
    """A paragraph in lines that are short enough for the house's prose."""
    return textwrap.wrap(
        bullet + words,
        width=88,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _against_aim(layer: str, key: str, spread: Spread) -> str:
    value: float = getattr(spread, key)
    wanted, bound = AIMS[layer]
    return f"**{value:.1f}**" if key == wanted and value <= bound else f"{value:.1f}"


def _counts(found: dict[str, int]) -> str:
    return ", ".join(f"{name.partition('.')[0]} {number}" for name, number in found.items())


def _upserts(section: Section[Upserts]) -> Iterator[str]:
    found = section.found
    rounds = len(found.costs[OURS])
    yield from _heading("Scattered upserts", section)
    yield from _filled(
        f"{found.changes:,} changes of {found.rows:,} rows ({found.table_bytes / 2**20:.0f} MiB); "
        f"the median of {rounds} rounds after one to warm up. All tables were equal in the end. "
        "The silver batch parses change records, tells what became of each, and writes the "
        f"change feed; the others get typed rows. The aim is {UPSERT_AIM:g} s."
    )
    yield ""
    yield "| way | wall s | CPU s | read MiB | written MiB | wall over ours | others |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    ours = median(one.wall for one in found.costs[OURS])
    for name, costs in sorted(found.costs.items()):
        wall = median(one.wall for one in costs)
        yield (
            f"| {name} | {wall:.1f} | {median(one.cpu for one in costs):.1f} "
            f"| {median(one.read for one in costs) / 2**20:.0f} "
            f"| {median(one.written for one in costs) / 2**20:.0f} | {wall / ours:.2f}x "
            f"| {median(one.others for one in costs):.2f} |"
        )


def _peer(section: Section[Peer]) -> Iterator[str]:
    found = section.found
    yield from _heading("A full topic to counts in windows", section)
    yield from _filled(
        f"{found.events:,} events, from the start of the process until the result is complete. "
        "Tidemark keeps each record in bronze, each event once in silver and the counts in gold; "
        "Flink SQL reads the same topic and keeps the counts alone."
        + (" Both results were equal." if found.flink else "")
    )
    yield ""
    if found.flink is None:
        yield from _filled(f"Flink was not measured: {found.missing}")
        yield ""
    yield "| system | wall s | events/s | CPU s | peak GiB | others |"
    yield "|---|---:|---:|---:|---:|---:|"
    yield _system(f"Tidemark, {found.pace}", found.events, found.ours)
    if found.flink is not None:
        yield _system(f"Flink SQL {found.flink_version}", found.events, found.flink)


def _system(name: str, events: int, cost: Cost) -> str:
    return (
        f"| {name} | {cost.wall:.1f} | {events / cost.wall:,.0f} | {cost.cpu:.1f} "
        f"| {cost.peak / 2**30:.2f} | {cost.others:.2f} |"
    )
