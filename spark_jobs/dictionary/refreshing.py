"""How a view is refreshed and why, as ``tidemark explain`` tells it."""

from __future__ import annotations

from spark_jobs.dictionary import markup
from spark_jobs.dictionary.tables import Dictionary
from spark_jobs.gold.explaining import rule_words
from spark_jobs.graph.maintenance.kept import kept_columns
from spark_jobs.graph.manifest import GoldEntry, MaintenanceRule
from spark_jobs.graph.obstacle_place import obstacle_place


def refreshing(found: Dictionary, entry: GoldEntry, text: str) -> str:
    """The section: the rule, what stands against a better one, each operator, what is kept.

    Args:
        found: the project.
        entry: the view.
        text: its file.
    """
    maintenance = entry.maintenance
    facts = [("Strategy", markup.words(entry.strategy)), ("Rule", markup.words(rule_words(entry)))]
    if maintenance is not None and maintenance.obstacle is not None:
        facts += [
            ("Obstacle", markup.words(f"{maintenance.detail} ({maintenance.obstacle})")),
            ("Where", markup.code(str(obstacle_place(entry, text)))),
            ("What helps", markup.words(maintenance.suggestion or "")),
        ]
    if entry.reads_clock:
        facts.append(("Clock", "rows leave and enter by time alone, without any change of inputs"))
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
    if entry.maintenance is None or entry.maintenance.rule is not MaintenanceRule.KEPT_GROUPS:
        return ""
    types = {
        name: {column.name.lower(): column.type for column in found.entries[name].columns}
        for name in entry.inputs
    }
    rows = [
        (markup.code(table), markup.code(column), markup.code(meaning))
        for table, columns in kept_columns(entry.query, types).items()
        for column, meaning in columns
    ]
    return markup.table(("kept beside it", "column", "holds"), rows)
