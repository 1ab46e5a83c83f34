"""How a reconciliation is shown and judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from spark_jobs.names import Disposition

if TYPE_CHECKING:
    from spark_jobs.bronze.reconcile import BronzeCount
    from spark_jobs.silver.reconcile import SilverCount
    from spark_jobs.silver.source_database import SourceComparison


@dataclass(frozen=True)
class Line:
    """One source with one of its silver tables, and the source table where it can be compared."""

    bronze: BronzeCount
    silver: SilverCount | None
    compared: SourceComparison | None

    @property
    def name(self) -> str:
        return str(self.silver.entry.table_name) if self.silver else f"bronze.{self.bronze.source}"

    @property
    def problems(self) -> tuple[str, ...]:
        """What does not hold, each in one line; empty where all does."""
        return tuple(f"{self.name}: {problem}" for problem in self._problems())

    def _problems(self) -> Iterator[str]:
        bronze = self.bronze
        if bronze.behind:
            yield f"{bronze.behind} Kafka records are not in bronze yet"
        if bronze.repeated:
            yield f"{bronze.repeated} Kafka records are in bronze more than once"
        for gap in bronze.missing:
            yield f"Kafka records are not in bronze: {gap}"
        if self.silver:
            if self.silver.behind:
                yield f"{self.silver.behind} bronze records are not taken up yet"
            yield from self.silver.problems
        if self.compared and not self.compared.equal:
            yield (
                f"{self.compared.missing} rows of the source database are not in silver, "
                f"{self.compared.unexpected} rows of silver are not in the source database"
            )

    def as_dict(self) -> dict[str, Any]:
        """The form for programs: counts by name, balanced, problems."""
        silver = self.silver
        return {
            "source": self.bronze.source,
            "kafka": self.bronze.kafka,
            "bronze": self.bronze.bronze,
            "silver": silver.entry.name if silver else None,
            **{str(name): getattr(silver.totals, name) if silver else None for name in Disposition},
            "silver_rows": silver.rows if silver else None,
            "source_rows": self.compared.rows if self.compared else None,
            "missing": self.compared.missing if self.compared else None,
            "unexpected": self.compared.unexpected if self.compared else None,
            "balanced": not self.problems,
            "problems": list(self.problems),
        }


@dataclass(frozen=True)
class Reconciliation:
    """All lines."""

    lines: tuple[Line, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(problem for line in self.lines for problem in line.problems)

    @property
    def balanced(self) -> bool:
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {"balanced": self.balanced, "lines": [line.as_dict() for line in self.lines]}


def reconciliation_table(found: Reconciliation) -> Table:
    """Where each record ended: in = applied + superseded + quarantined + duplicate + ignored."""
    table = Table(title="Records in, and where each ended", title_justify="left")
    table.add_column("source", overflow="fold")
    for name in ("Kafka", "bronze", *map(str, Disposition), "silver", "Postgres"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for line in found.lines:
        values = line.as_dict()
        numbers = [
            "" if values[key] is None else f"{values[key]:,}"
            for key in ("kafka", "bronze", *map(str, Disposition), "silver_rows", "source_rows")
        ]
        name = values["silver"] or values["source"]
        source = name if name == values["source"] else f"{values['source']} → {name}"
        holds = values["balanced"]
        verdict = "balanced" if holds else "does not balance"
        if holds and line.compared:
            verdict = "balanced, equal"
        table.add_row(source, *numbers, f"[{'green' if holds else 'red'}]{verdict}[/]")
    return table


def examples_tables(found: Reconciliation) -> list[Table]:
    """Rows that differ between silver and its source database."""
    shown = []
    for line in found.lines:
        if line.compared is None or not line.compared.examples:
            continue
        table = Table(
            title=f"{line.name}: + only in silver, - only in the source database",
            title_justify="left",
        )
        names = list(line.compared.examples[0])
        for name in names:
            table.add_column(name or "±", overflow="fold")
        for example in line.compared.examples:
            table.add_row(*(str(example[name]) for name in names))
        shown.append(table)
    return shown
