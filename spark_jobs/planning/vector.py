"""Version vectors: the version of each input that a result was computed from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from spark_jobs.names import TableName, TableVersion


@dataclass(frozen=True)
class VersionVector:
    """A version of each input of a view.

    >>> orders = TableName.parse("silver.orders")
    >>> str(VersionVector({orders: TableVersion("a", 41)}))
    'silver.orders@41'
    """

    versions: Mapping[TableName, TableVersion]

    def __str__(self) -> str:
        return ", ".join(f"{table}@{version.version}" for table, version in self)

    def __iter__(self) -> Iterator[tuple[TableName, TableVersion]]:
        return iter(sorted(self.versions.items()))

    def get(self, table: TableName) -> TableVersion | None:
        """The version of a table; None if the vector lacks it."""
        return self.versions.get(table)

    def as_dict(self) -> dict[str, Any]:
        """As stored in commits and in the ledger: ``id`` and ``version`` by table name."""
        return {
            str(table): {"id": version.table_id, "version": version.version}
            for table, version in self
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Decode the result of ``as_dict``."""
        return cls(
            {
                TableName.parse(name): TableVersion(str(one["id"]), int(one["version"]))
                for name, one in value.items()
            }
        )
