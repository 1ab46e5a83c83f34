"""The section of a view's page about its refreshes, as in ``tidemark explain``."""

from __future__ import annotations

from spark_jobs.gold.explain.explanation import strategy_words
from spark_jobs.graph.maintenance.state_columns import state_columns
from spark_jobs.graph.manifest import GoldEntry, MaintenanceStrategy
from spark_jobs.graph.obstacle_place import obstacle_place
from spark_jobs.serving.dictionary import markup
from spark_jobs.serving.dictionary.tables import Dictionary


def refreshing(found: Dictionary, entry: GoldEntry, text: str) -> str:
    """The section: maintenance strategy, obstacles, operators, aggregate state.

    Args:
        found: the project.
        entry: the view.
        text: text of its file.
    """
    maintenance = entry.maintenance
    facts = [
        ("Strategy", markup.words(entry.strategy)),
        ("Maintenance", markup.words(strategy_words(entry))),
    ]
    if maintenance is not None and maintenance.obstacle is not None:
        facts += [
            ("Obstacle", markup.words(f"{maintenance.detail} ({maintenance.obstacle})")),
            ("Where", markup.code(str(obstacle_place(entry, text)))),
            ("What helps", markup.words(maintenance.suggestion or "")),
        ]
    if entry.reads_clock:
        facts.append(("Clock", "time alone deletes and inserts rows, without any change of inputs"))
    operators = () if maintenance is None else maintenance.operators
    return markup.section(
        "How it is refreshed",
        markup.table(("", ""), facts),
        markup.table(
            ("operator", "what a change of its input does"),
            [(markup.code(one.operator), markup.words(one.rule)) for one in operators],
        ),
        _kept(found, entry),
    )


def _kept(found: Dictionary, entry: GoldEntry) -> str:
    if (
        entry.maintenance is None
        or entry.maintenance.rule is not MaintenanceStrategy.AGGREGATE_STATE
    ):
        return ""
    types = {
        name: {column.name.lower(): column.type for column in found.entries[name].columns}
        for name in entry.inputs
    }
    rows = [
        (markup.code(table), markup.code(column), markup.code(meaning))
        for table, columns in state_columns(entry.query, types).items()
        for column, meaning in columns
    ]
    return markup.table(("state table", "column", "contains"), rows)
