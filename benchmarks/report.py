"""A run as JSON, as a Markdown table and as a plot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.choice import choice
from benchmarks.plot import plot
from benchmarks.records import FULL, IDLE, OURS, Cell, Run, mean, speedup

Cells = dict[tuple[str, float, str], Cell]
# What a refresh may cost over a full recomputation.
_SLOWER = 0.85


def write_report(run: Run, *, results: Path, papers: Path) -> list[Path]:
    """Write all three; their names tell the scale.

    Args:
        run: a run whose every result was right.
        results: the folder of the JSON.
        papers: the folder of table and plot.
    """
    name = f"ivm-scale-{run.facts.scale:g}"
    files = {
        results / f"{name}.json": json.dumps(run.as_dict(), indent=1) + "\n",
        papers / f"{name}.md": markdown(run, picture=f"{name}.svg"),
        papers / f"{name}.svg": plot(run.cells()),
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return list(files)


def markdown(run: Run, *, picture: str) -> str:
    """The page of a run."""
    cells, facts = run.cells(), run.facts
    loads = " and ".join(f"{one[0]:.1f}" for one in facts.load)
    used = ", ".join(f"{name} {number}" for name, number in facts.versions.items())
    return "\n".join(
        [
            f"# Incremental maintenance of TPC-H, scale {facts.scale:g}",
            "",
            f"Written by `make bench-ivm SCALE={facts.scale:g}`; [how it is measured](README.md).",
            "",
            f"- {facts.started_at} to {facts.finished_at}, commit {facts.commit}",
            f"- {facts.processor}, {facts.cores} cores, {facts.memory / 2**30:.0f} GiB",
            f"  load {loads} at start and end",
            f"- other programs used {mean_others(cells):.2f} cores in the median",
            f"- {used}",
            f"- JVM: heap {facts.heap}, options `{facts.java_options}`",
            f"- {facts.repetitions} measured rounds, seed {facts.seed}",
            "- every result was compared with DuckDB's, and equal",
            "",
            f"![CPU of a full recomputation over CPU of a refresh]({picture})",
            "",
            "## Together",
            "",
            *_summary(cells),
            "",
            *_sections(cells),
        ]
    )


def mean_others(cells: Cells) -> float:
    """The median load by other programs over all cells, in cores."""
    ordered = sorted(one.others for one in cells.values())
    return ordered[len(ordered) // 2]


def _summary(cells: Cells) -> Iterator[str]:
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
            f"| {share:.1%} | {mean(ratios.values()):.2f}x | {ratios[worst]:.2f}x ({worst}) "
            f"| {slow} of {len(queries)} | {chosen} "
            f"| {peak / 2**30:.1f} GiB | {idle * 1000:.0f} ms |"
        )


def _sections(cells: Cells) -> Iterator[str]:
    for share in _shares(cells):
        yield f"## {share:.1%} changed"
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


def _queries(cells: Cells) -> list[str]:
    return sorted({query for query, _, _ in cells})


def _shares(cells: Cells) -> list[float]:
    return sorted({share for _, share, _ in cells})
