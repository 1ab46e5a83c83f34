"""Limits of the graph: length of chains of views, number of views that read one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from sqlglot import exp

from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.errors import GraphTooDeepError, TooManyReadersError
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.sql import table_nodes
from spark_jobs.names import Layer
from spark_jobs.sections import GraphSettings

Views = Mapping[str, tuple[SqlText, exp.Query]]


def check_limits(
    views: Views, tiers: Mapping[str, int], limits: GraphSettings
) -> Iterator[LakehouseError]:
    """Report chains and tables beyond the limits, each once.

    Args:
        views: parsed gold views, by name.
        tiers: tiers of the views that are in no cycle.
        limits: the settings.
    """
    for name, tier in sorted(tiers.items()):
        # The first tier beyond the limit; reporting higher ones would repeat the problem.
        if tier != limits.most_tiers:
            continue
        text, tree = views[name]
        below = {one for one, its in tiers.items() if its == tier - 1}
        places = (
            text.of(node)
            for node in table_nodes(tree)
            if node.db.lower() == Layer.GOLD and node.name.lower() in below
        )
        yield GraphTooDeepError(name, limits.most_tiers, location=next(places))
    for table, readers in sorted(_readers(views).items()):
        if len(readers) > limits.most_readers:
            place = readers[sorted(readers)[limits.most_readers]]
            yield TooManyReadersError(table, len(readers), limits.most_readers, location=place)


def _readers(views: Views) -> dict[str, dict[str, Location]]:
    """For each table, the views that read it, and where they first name it."""
    found: dict[str, dict[str, Location]] = defaultdict(dict)
    for name, (text, tree) in views.items():
        for node in table_nodes(tree):
            if node.db.lower() in set(Layer):
                table = f"{node.db}.{node.name}".lower()
                found[table].setdefault(name, text.of(node))
    return found
