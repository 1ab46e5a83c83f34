"""Collects the state of a project for the page: cards, and problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from spark_jobs.serving.page.cards import GOLD_HEADS, SILVER_HEADS, SINK_HEADS, STREAM_HEADS, Cards
from spark_jobs.serving.page.facts import PageFacts, Section, Tone
from spark_jobs.serving.report.status_check import Trouble
from spark_jobs.serving.report.table_graph import edges

if TYPE_CHECKING:
    from spark_jobs.serving.project import OpenProject


def page_facts(project: OpenProject, *, now: datetime) -> PageFacts:
    """The current state of a project's tables and sinks."""
    from spark_jobs.state.progress import sink_query

    manifest = project.manifest
    tiers = max((entry.tier for entry in manifest.gold.values()), default=-1) + 1
    cards = Cards(project, now)
    sections = (
        Section("Gold views", GOLD_HEADS, tuple(map(cards.gold, manifest.gold.values()))),
        Section("Silver tables", SILVER_HEADS, tuple(map(cards.silver, manifest.silver.values()))),
        Section("Sources", STREAM_HEADS, tuple(map(cards.source, manifest.sources.values()))),
        Section(
            "Sinks",
            SINK_HEADS,
            tuple(cards.sink(one, column=2 + tiers) for one in manifest.sinks.values()),
        ),
    )
    sunk = ((one.table, sink_query(name)) for name, one in manifest.sinks.items())
    gold = tuple("gold" if tier == 0 else f"gold, tier {tier}" for tier in range(tiers))
    return PageFacts(
        project=manifest.project,
        at=now,
        columns=("sources", "silver", *gold, *(("sinks",) if manifest.sinks else ())),
        sections=tuple(one for one in sections if one.cards),
        edges=(*edges(manifest), *sunk),
        attention=tuple(_attention(sections, cards.troubles)),
    )


def _attention(sections: tuple[Section, ...], found: Sequence[Trouble]) -> Iterator[str]:
    """Problems that the watch finds, and views and tables in a bad state for other reasons."""
    yield from map(str, found)
    named = {one.name for one in found}
    for section in sections:
        for card in section.cards:
            if card.tone is Tone.BAD and card.name not in named:
                why = f"{card.name}: {', '.join(filter(None, (card.state, card.note)))}"
                yield f"{why}; see docs/runbooks/{card.runbook}.md"
