"""The pages that list all tables."""

from __future__ import annotations

from spark_jobs.definitions.durations import duration_text
from spark_jobs.graph.manifest import GoldEntry, SourceEntry
from spark_jobs.serving.dictionary import markup
from spark_jobs.serving.dictionary.pages import refreshed
from spark_jobs.serving.dictionary.picture import draw
from spark_jobs.serving.dictionary.tables import Dictionary, Entry


def overview(found: Dictionary) -> str:
    """All tables by layer, with description and owner."""
    manifest = found.manifest
    return markup.page(
        "Data dictionary",
        [
            (
                "Each page describes a table: meaning, columns, lineage, refreshes and checks. "
                "All pages are generated from the declarations."
            ),
            markup.section(
                "Gold",
                "Views, published after their checks.",
                markup.table(
                    ("table", "what it is", "owner", "refreshed", "freshness target"),
                    [_view(one) for one in manifest.gold.values()],
                ),
            ),
            markup.section(
                "Silver",
                "Typed rows, filled by streams.",
                markup.table(
                    ("table", "what it is", "owner"),
                    [_line(one) for one in manifest.silver.values()],
                ),
            ),
            markup.section(
                "Bronze",
                "Sources: records as they were received, and Delta tables that others write.",
                markup.table(
                    ("table", "what it is", "owner", "comes from"),
                    [
                        (*_line(one), f"{one.format} {markup.code(_origin(one))}")
                        for one in manifest.sources.values()
                    ],
                ),
            ),
            markup.section("All tables", draw(found.graph) if found.entries else ""),
        ],
    )


def _origin(entry: SourceEntry) -> str:
    return entry.topic or entry.location or entry.path or ""


def _line(entry: Entry) -> tuple[str, str, str]:
    return (
        markup.link(entry.name, f"{entry.table_name}.md"),
        markup.words(_first_sentence(entry.description or "")),
        markup.words(entry.owner or ""),
    )


def _first_sentence(text: str) -> str:
    """The first sentence of a description; the table's page has the rest."""
    whole = " ".join(text.split())
    first, stop, _ = whole.partition(". ")
    return f"{first}." if stop else whole


def _view(entry: GoldEntry) -> tuple[str, ...]:
    target = entry.freshness_seconds
    return (*_line(entry), refreshed(entry), duration_text(target) if target else "none")
