"""A run as JSON, as a Markdown table and as a plot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import fill

from benchmarks.choice import choice
from benchmarks.plot import plot
from benchmarks.records import FULL, IDLE, OURS, Cell, Run, ScaleFacts, mean, speedup

Cells = dict[tuple[str, float, str], Cell]
# Accepted cost of a refresh, relative to a full recomputation.
_SLOWER = 0.85


def write_report(run: Run, *, results: Path, papers: Path) -> list[Path]:
    """Write a page, a plot for each engine setting, and the JSON; the run is in the file names.

    Args:
        run: a run whose results were all correct.
        results: the folder of the JSON.
        papers: the folder of page and plots.
    """
    name = _name(run)
    files = {
        results / f"{name}.json": json.dumps(run.as_dict(), indent=1) + "\n",
        papers / f"{name}.md": markdown(run),
    }
    for engine in run.engines:
        files[papers / _picture(run, engine)] = plot(run.cells(engine))
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return list(files)


def markdown(run: Run) -> str:
    """The page of a run, with a separate part for each engine setting."""
    facts = run.facts
    loads = " and ".join(f"{one[0]:.1f}" for one in facts.load)
    used = ", ".join(f"{name} {number}" for name, number in facts.versions.items())
    cells = [one for engine in run.engines for one in run.cells(engine).values()]
    return "\n".join(
        [
            f"# TPC-H at scale {facts.scale:g}: {' and '.join(run.engines)}, {facts.keys} orders",
            "",
            f"Written by `make bench-ivm SCALE={facts.scale:g}`; [how it is measured](README.md).",
            "",
            f"- {facts.started_at} to {facts.finished_at}, commit {facts.commit}",
            f"- {facts.processor}, {facts.cores} cores, {facts.memory / 2**30:.0f} GiB",
            f"  load {loads} at start and end",
            f"- other programs used {median_others(cells):.2f} cores in the median",
            f"- {used}",
            fill(
                f"- JVM: heap {facts.heap}, options `{facts.java_options}`",
                width=89,
                subsequent_indent="  ",
                break_on_hyphens=False,
            ),
            f"- rounds: {facts.repetitions}; seed {facts.seed}, {facts.keys} orders change",
            "- every result was compared with DuckDB's, and equal",
            "",
            *(line for engine in run.engines for line in _part(run, engine)),
        ]
    )


def median_others(cells: Iterable[Cell]) -> float:
    """The median load by other programs over all cells, in cores."""
    ordered = sorted(one.others for one in cells)
    return ordered[len(ordered) // 2]


def _name(run: Run) -> str:
    keys = "" if run.facts.keys == "random" else f"-{run.facts.keys}"
    return f"ivm-scale-{run.facts.scale:g}-{'-'.join(run.engines)}{keys}"


def _picture(run: Run, engine: str) -> str:
    return f"{_name(run)}{f'.{engine}' if len(run.engines) > 1 else ''}.svg"


def _part(run: Run, engine: str) -> Iterator[str]:
    cells = run.cells(engine)
    yield f"## `gold.engine: {engine}`"
    yield ""
    yield f"![CPU of a full recomputation over CPU of a refresh]({_picture(run, engine)})"
    yield ""
    yield from _summary(cells, run.facts)
    yield ""
    yield from _sections(cells, run.facts)


def _summary(cells: Cells, facts: ScaleFacts) -> Iterator[str]:
    yield "Spark's CPU for a full recomputation over ours; above 1x, a refresh takes less."
    yield ""
    yield (
        "| changed | geometric mean | least | below 0.85x | within 15 % of our best strategy "
        "| peak | idle |"
    )
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for share in _shares(cells):
        queries = _queries(cells)
        ratios = {query: speedup(cells, query, share) for query in queries}
        worst = min(ratios, key=lambda query: ratios[query])
        slow = sum(ratio < _SLOWER for ratio in ratios.values())
        peak = max(cells[query, share, OURS].peak for query in queries)
        known = [one for query in queries if (one := choice(cells, query, share)) is not None]
        chosen = f"{sum(one.near for one in known)} of {len(known)}" if known else "not measured"
        idle = sorted(cells[query, share, IDLE].wall for query in queries)[len(queries) // 2]
        yield (
            f"| {_changed(share, facts)} | {mean(ratios.values()):.2f}x "
            f"| {ratios[worst]:.2f}x ({worst}) "
            f"| {slow} of {len(queries)} | {chosen} "
            f"| {peak / 2**30:.1f} GiB | {idle * 1000:.0f} ms |"
        )


def _sections(cells: Cells, facts: ScaleFacts) -> Iterator[str]:
    for share in _shares(cells):
        yield f"### {_changed(share, facts)} changed"
        yield ""
        yield "CPU in seconds; wall, megabytes read and written, and memory are of our refresh."
        yield "As chosen, and best: medians over all our refreshes of that strategy."
        yield ""
        yield (
            "| query | ours | Spark full | full / ours | by hand | DuckDB | did "
            "| as chosen | best | wall | read | written | GiB |"
        )
        yield "|---|---:|---:|---:|---:|---:|---|---:|---|---:|---:|---:|---:|"
        for query in _queries(cells):
            yield _line(cells, query, share)
        yield ""


def _line(cells: Cells, query: str, share: float) -> str:
    ours = cells[query, share, OURS]
    hand = cells.get((query, share, "handwritten"))
    known = choice(cells, query, share)
    values = [
        query,
        f"{ours.cpu:.2f}",
        f"{cells[query, share, FULL].cpu:.2f}",
        f"{speedup(cells, query, share):.2f}x",
        f"{hand.cpu:.2f}" if hand else "",
        f"{cells[query, share, 'duckdb-full'].cpu:.2f}",
        ours.chosen,
        "" if known is None else f"{known.cost:.2f}",
        "" if known is None else f"{known.best[0]} {known.best[1]:.2f}",
        f"{ours.wall:.2f}",
        f"{ours.read / 1e6:.1f}",
        f"{ours.written / 1e6:.1f}",
        f"{ours.peak / 2**30:.1f}",
    ]
    return f"| {' | '.join(values)} |"


def _changed(share: float, facts: ScaleFacts) -> str:
    """A share, and its number of orders; an order changes with its lines."""
    return f"{share * 100:.3g} %, {round(share * facts.orders):,} orders"


def _queries(cells: Cells) -> list[str]:
    return sorted({query for query, _, _ in cells})


def _shares(cells: Cells) -> list[float]:
    return sorted({share for _, share, _ in cells})
