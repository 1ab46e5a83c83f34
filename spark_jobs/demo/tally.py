"""Counts of a load run's operations, by table and kind and by topic and trait."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import assert_never

from spark_jobs.demo.operations import (
    Ending,
    Malformation,
    Operation,
    Record,
    Transaction,
)


@dataclass
class Tally:
    """Counters of what was sent, keyed by names."""

    committed: int = 0
    rolled_back: int = 0
    # (table, kind of change), of committed transactions only.
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    # (topic, trait).
    records: Counter[tuple[str, str]] = field(default_factory=Counter)
    # (topic, kind of malformation).
    malformed: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, operation: Operation) -> None:
        """Count an executed operation."""
        match operation.action:
            case Transaction(changes=changes, ending=Ending.COMMIT):
                self.committed += 1
                self.changes.update((one.table, one.kind.value) for one in changes)
            case Transaction():
                self.rolled_back += 1
            case Record(topic=topic, trait=trait, malformation=malformation):
                self.records[topic, trait.value] += 1
                if malformation is not None:
                    self.malformed[topic, malformation.value] += 1
            case other:
                assert_never(other)

    def sent_to(self, topic: str) -> int:
        """All records of one topic."""
        return sum(count for (name, _), count in self.records.items() if name == topic)

    def quarantinable(self, topic: str) -> int:
        """Malformed records of a topic, without tombstones, which are ignored."""
        return sum(
            count
            for (name, kind), count in self.malformed.items()
            if name == topic and kind != Malformation.TOMBSTONE
        )

    def as_dict(self) -> dict[str, object]:
        """The counts as a JSON object.

        Returns:
            ``transactions`` (``committed``, ``rolled_back``); and ``changes``, ``records`` and
                ``malformed``, each a number by two names.
        """
        return {
            "transactions": {"committed": self.committed, "rolled_back": self.rolled_back},
            "changes": _nested(self.changes),
            "records": _nested(self.records),
            "malformed": _nested(self.malformed),
        }


def _nested(counter: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (outer, inner), count in sorted(counter.items()):
        nested.setdefault(outer, {})[inner] = count
    return nested
