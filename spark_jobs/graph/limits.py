"""Limits of the graph: length of chains of views, number of views that read one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Protocol

from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.errors import GraphTooDeepError, TooManyReadersError
from spark_jobs.names import Layer, TableName
from spark_jobs.sections import GraphSettings


class View(Protocol):
    """A view with valid SQL."""

    @property
    def inputs(self) -> tuple[TableName, ...]:
        """The tables that it reads."""

    def place_of(self, table: TableName) -> Location:
        """Where it first names a table."""


def check_limits(
    views: Mapping[str, View], tiers: Mapping[str, int], limits: GraphSettings
) -> Iterator[LakehouseError]:
    """Report chains and tables beyond the limits, each once.

    Args:
        views: gold views, by name.
        tiers: tiers of the views that are in no cycle.
        limits: the settings.
    """
    for name, tier in sorted(tiers.items()):
        # The first tier beyond the limit; reporting higher ones would repeat the problem.
        if tier != limits.most_tiers:
            continue
        view = views[name]
        below = {one for one, its in tiers.items() if its == tier - 1}
        places = (
            view.place_of(one)
            for one in view.inputs
            if one.layer is Layer.GOLD and one.name in below
        )
        first = min(places, key=lambda place: (place.line or 0, place.column or 0))
        yield GraphTooDeepError(name, limits.most_tiers, location=first)
    readers: dict[TableName, list[str]] = defaultdict(list)
    for name, view in sorted(views.items()):
        for table in view.inputs:
            readers[table].append(name)
    for table, names in sorted(readers.items(), key=lambda one: str(one[0])):
        if len(names) > limits.most_readers:
            place = views[names[limits.most_readers]].place_of(table)
            yield TooManyReadersError(str(table), len(names), limits.most_readers, location=place)
