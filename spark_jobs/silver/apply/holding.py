"""Keeps a table before a batch that fails its suite, until the suite or the policy changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from spark_jobs.definitions.batch_rules import rules_digest
from spark_jobs.graph.manifest import SilverEntry
from spark_jobs.quality.verdict import Verdict
from spark_jobs.silver.errors import BatchHeldError
from spark_jobs.state.batches import SilverBatch
from spark_jobs.state.store import ControlStore

# The rules by which a batch was held, in its recorded verdict.
_RULES = "rules"


@dataclass(frozen=True)
class BatchHold:
    """Records that a batch is held, and refuses the stream while the rules are the same."""

    entry: SilverEntry
    store: ControlStore
    epoch: int
    clock: Callable[[], datetime]

    def refuse(self, verdict: Verdict, batch_id: int) -> None:
        """Record a failed batch, of which nothing is written.

        Raises:
            BatchHeldError: always.
        """
        held = SilverBatch(
            silver=self.entry.name,
            epoch=self.epoch,
            batch_id=batch_id,
            records=0,
            at=self.clock(),
            outcome=str(verdict.outcome),
            verdict={**verdict.as_dict(), _RULES: self._rules},
        )
        self.store.record_silver_batch(held)
        raise self._error(held)

    def check(self) -> None:
        """Fail if a batch is held by the current rules; by other rules it is judged again.

        Raises:
            BatchHeldError: a batch is held.
        """
        held = self.store.held_batch(self.entry.name, epoch=self.epoch)
        if held is not None and (held.verdict or {}).get(_RULES) == self._rules:
            raise self._error(held)

    @property
    def _rules(self) -> str:
        return rules_digest(self.entry.rules, self.entry.on_failure)

    def _error(self, held: SilverBatch) -> BatchHeldError:
        failures = [one["message"] for one in (held.verdict or {}).get("results", ())]
        name, file = str(self.entry.table_name), self.entry.file
        return BatchHeldError(name, held.batch_id, file, failures)
