"""What holds of a stack after anything: everything arrived, and every view is its SQL."""

from __future__ import annotations

import json

from tests.e2e import oracle
from tests.e2e.running import RunningStack

TABLES = ("users", "products", "titles", "orders", "order_items")
# The harness runs two things at once: a service that restarts and the load.
PATIENCE_SECONDS = 300


def wait_drained(stack: RunningStack, shop: str) -> None:
    """Wait until bronze holds what the broker holds, and silver what Postgres holds."""
    settings = stack.settings

    def drained() -> bool:
        return oracle.bronze_counts(settings) == oracle.kafka_ends(settings) and all(
            oracle.silver_rows(settings, name) == oracle.postgres_rows(settings, shop, name)
            for name in TABLES
        )

    oracle.wait_until(drained, seconds=PATIENCE_SECONDS, what="everything arrived")


def assert_sound(stack: RunningStack, *views: str) -> None:
    """The project's own checks hold too, for some views or for all."""
    reconciled = stack.tidemark("reconcile", "--wait", "120", "--json", check=False)
    assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
    verified = stack.tidemark("verify", *(views or ["--all"]), "--json", check=False, seconds=1200)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert all(view["holds"] for view in json.loads(verified.stdout))
