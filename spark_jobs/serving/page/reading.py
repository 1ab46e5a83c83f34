"""Collects the state of a project for the page: cards, and problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from spark_jobs.serving.page.cards import GOLD_HEADS, SILVER_HEADS, SINK_HEADS, STREAM_HEADS, Cards
from spark_jobs.serving.page.facts import Attention, PageFacts, Section, Tone
from spark_jobs.serving.page.incident_lines import incident_lines, runbook_link
from spark_jobs.serving.report.status_check import Trouble
from spark_jobs.serving.report.table_graph import edges

if TYPE_CHECKING:
    from spark_jobs.serving.project import OpenProject


def page_facts(project: OpenProject, *, now: datetime) -> PageFacts:
    """The current state of a project's tables and sinks."""
    from spark_jobs.state.progress import sink_query

    manifest, runbooks = project.manifest, project.settings.alerts.runbooks.rstrip("/")
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
        attention=tuple(
            Attention(text, runbook_link(f"{runbooks}/{name}.md"))
            for text, name in _attention(sections, cards.troubles)
        ),
        incidents=incident_lines(project, now=now),
    )


def _attention(
    sections: tuple[Section, ...], found: Sequence[Trouble]
) -> Iterator[tuple[str, str]]:
    """Problems that the watch finds, and views and tables in a bad state for other reasons.

    What has a problem only because of another one is left out: it would hide the cause.

    Yields:
        the text and the runbook's name.
    """
    yield from ((f"{one.name}: {one.what}", one.runbook) for one in found)
    named = {name for one in found for name in (one.name, *one.causes)}
    for section in sections:
        for card in section.cards:
            if card.tone is Tone.BAD and card.name not in named:
                why = ", ".join(filter(None, (card.state, card.note)))
                yield f"{card.name}: {why}", card.runbook
