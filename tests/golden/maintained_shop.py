"""A project with published views and newer inputs, written without a JVM."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.names import TableVersion
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark
from spark_jobs.settings import Settings, load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import log
from spark_jobs.storage.compiled import compile_settings

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
FEED = {"delta.enableChangeDataFeed": "true"}
ORDERS = {
    "order_id": pa.array([1, 2, 3], pa.int64()),
    "user_id": pa.array([1, 1, 2], pa.int64()),
    "amount": pa.array([10, 20, 5], pa.int64()),
    "weight": pa.array([1.5, 2.5, 0.5], pa.float64()),
}
USERS = {"user_id": pa.array([1, 2], pa.int64()), "segment": ["gold", None]}
VIEWS = {
    "joined": "SELECT o.order_id, u.segment FROM bronze.orders AS o "
    "JOIN bronze.users AS u ON u.user_id = o.user_id WHERE o.amount > 5",
    "outer_joined": "SELECT u.user_id, o.amount FROM bronze.users AS u "
    "LEFT JOIN bronze.orders AS o ON u.user_id = o.user_id",
    "without": "SELECT u.user_id FROM bronze.users AS u WHERE NOT EXISTS "
    "(SELECT 1 FROM bronze.orders AS o WHERE o.user_id = u.user_id)",
    "not_in": "SELECT u.user_id FROM bronze.users AS u WHERE u.user_id NOT IN "
    "(SELECT o.user_id FROM bronze.orders AS o)",
    "sums": "SELECT o.user_id, COUNT(*) AS orders, SUM(o.amount) AS total "
    "FROM bronze.orders AS o GROUP BY o.user_id",
    "extremes": "SELECT COUNT(*) AS orders, MIN(o.amount) AS least, MAX(o.amount) AS most "
    "FROM bronze.orders AS o",
    "weights": "SELECT o.user_id, SUM(o.weight) AS weight "
    "FROM bronze.orders AS o GROUP BY o.user_id",
    "ranked": "SELECT o.order_id, RANK() OVER (PARTITION BY o.user_id ORDER BY o.amount) "
    "AS place FROM bronze.orders AS o",
    "united": "SELECT o.user_id FROM bronze.orders AS o "
    "UNION ALL SELECT u.user_id FROM bronze.users AS u",
    "best": "SELECT o.user_id, SUM(o.amount) AS total FROM bronze.orders AS o "
    "GROUP BY o.user_id ORDER BY total DESC, o.user_id LIMIT 2",
    "heaviest": "SELECT o.order_id, o.weight\nFROM bronze.orders AS o\n"
    "ORDER BY o.weight DESC, o.order_id LIMIT 2",
    "everything": "SELECT\n  STDDEV(o.weight) AS many\nFROM bronze.orders AS o",
    "numbered": "SELECT o.order_id,\n  ROW_NUMBER() OVER (ORDER BY o.order_id) AS place\n"
    "FROM bronze.orders AS o",
    "recent": "SELECT o.order_id FROM bronze.orders AS o WHERE o.order_id < UNIX_TIMESTAMP()",
    "by_hand": "SELECT u.user_id FROM bronze.users AS u",
    "new": "SELECT u.segment FROM bronze.users AS u",
}
UNPUBLISHED = {"new"}
STRATEGIES = {"by_hand": "full"}


def write_shop(project: Path) -> Settings:
    """Declare two foreign tables and their views, and write the tables."""
    for table, rows in (("orders", ORDERS), ("users", USERS)):
        source = project / "sources" / f"{table}.yml"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(f"format: delta\nlocation: data/{table}\n", encoding="utf-8")
        write_deltalake(project / "data" / table, pa.table(rows), configuration=FEED)
    for name, query in VIEWS.items():
        file = project / "sql" / "gold" / f"{name}.sql"
        file.parent.mkdir(parents=True, exist_ok=True)
        strategy = STRATEGIES.get(name, "incremental")
        file.write_text(
            "/* gold\ndescription: A view.\nowner: tests\nrefresh: bulk\n"
            f"strategy: {strategy}\n*/\n{query}\n",
            encoding="utf-8",
        )
    return load_settings(project, state_dir=project / "state")


def two_values(kind: str) -> pa.Array:
    """Two values of one of the types that the views' columns have."""
    types = {"bigint": pa.int64(), "int": pa.int32(), "double": pa.float64(), "string": pa.string()}
    return pa.array([1, 2]).cast(types[kind])


def publish_all(refresher: Refresher) -> None:
    """Publish every view at the inputs' newest versions; the content does not matter."""
    context = refresher.context
    for name, entry in context.manifest.gold.items():
        if name in UNPUBLISHED:
            continue
        inputs = context.manifest.inputs_of(name)
        found = {table: log.table_version(context.locations.of(table)) for table in inputs}
        mark = Watermark(
            view=name,
            sequence=1,
            epoch=1,
            fingerprint=entry.fingerprint,
            rule="full",
            vector=VersionVector({table: at for table, at in found.items() if at is not None}),
            tick="t1",
            attempt="a1",
            clock=NOON,
            states=_state(refresher, name, entry.fingerprint) if name == "best" else {},
        )
        write_deltalake(
            context.published_at(name),
            pa.table({column.name: two_values(column.type) for column in entry.columns}),
            configuration=FEED,
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": json.dumps(mark.as_metadata())}
            ),
        )


def move_on(project: Path) -> None:
    """Append one order."""
    more = pa.table({name: values[:1] for name, values in ORDERS.items()})
    write_deltalake(project / "data" / "orders", more, mode="append")


def opened(settings: Settings, store: ControlStore) -> Refresher:
    """A refresher whose clock is fixed one hour after the publications."""
    manifest = compile_settings(settings)
    return Refresher(settings, manifest, store, now=lambda: NOON + timedelta(hours=1))


def _state(refresher: Refresher, view: str, fingerprint: str) -> dict[str, TableVersion]:
    location = refresher.context.lake.state(view, fingerprint, 0)
    # In two files, as after some refreshes.
    for count in (2, -1):
        groups = {"k0": [1], "n": [count], "nn0": [count], "sum0": [5 * count]}
        write_deltalake(location, pa.table(groups), mode="append")
    found = log.table_version(location)
    assert found is not None
    return {"state.0": found}
