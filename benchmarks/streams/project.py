"""Projects with one source of events, for the sections."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.names import TableName

TOPIC = "events"
BRONZE = TableName.parse("bronze.events")
SILVER = TableName.parse("silver.events")
GOLD = TableName.parse("gold.events_10s")
WINDOW_SECONDS = 10

_SOURCE = f"""description: Events that the benchmark makes.
owner: benchmarks
format: json
topic: {TOPIC}
event_id: event_id
event_time: event_time
watermark: 24 hours
columns:
  event_id: {{type: STRING, required: true}}
  user_id: {{type: BIGINT, required: true}}
  amount: {{type: "DECIMAL(12,2)", required: true}}
  event_time: {{type: TIMESTAMP, required: true}}
  note: STRING
"""
_SILVER = f"""/* silver
description: The events, once each.
owner: benchmarks
*/
SELECT
  s.event_id,
  s.user_id,
  s.amount,
  s.event_time
FROM {BRONZE} AS s
"""
_GOLD = f"""/* gold
description: Events and their amount in windows of ten seconds.
owner: benchmarks
refresh: continuous
*/
SELECT
  WINDOW(e.event_time, '{WINDOW_SECONDS} seconds').start AS window_start,
  COUNT(*) AS events,
  SUM(e.amount) AS amount
FROM {SILVER} AS e
GROUP BY WINDOW(e.event_time, '{WINDOW_SECONDS} seconds')
"""

ACCOUNTS = "accounts"
_CHANGES = f"""description: Accounts as a database sends them.
owner: benchmarks
format: debezium
topic: {ACCOUNTS}
table: public.{ACCOUNTS}
keys: [id]
columns:
  id: {{type: BIGINT, required: true}}
  name: STRING
  amount: "DECIMAL(12,2)"
  updated_at: TIMESTAMP
"""
_ROWS = f"""/* silver
description: The accounts as they are now.
owner: benchmarks
*/
SELECT
  s.id,
  s.name,
  s.amount,
  s.updated_at
FROM bronze.{ACCOUNTS} AS s
"""


def write_bronze(folder: Path) -> None:
    """Declare only the source."""
    _write(folder, "sources/events.yml", _SOURCE)


def write_chain(folder: Path) -> None:
    """Declare the source, its silver table and a continuous view."""
    write_bronze(folder)
    _write(folder, "sql/silver/events.sql", _SILVER)
    _write(folder, f"sql/gold/{GOLD.name}.sql", _GOLD)


def write_rows(folder: Path) -> None:
    """Declare a source of changes and its table of current rows."""
    _write(folder, f"sources/{ACCOUNTS}.yml", _CHANGES)
    _write(folder, f"sql/silver/{ACCOUNTS}.sql", _ROWS)


def _write(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
