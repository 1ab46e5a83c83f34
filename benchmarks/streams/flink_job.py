"""The Flink job, run in its own virtual environment: counts of a topic's records in windows.

It prints the windows as JSON and then waits for the end of its standard input, so that its cost can
be measured.
"""

from __future__ import annotations

import json
import sys

from pyflink.table import EnvironmentSettings, TableEnvironment

SOURCE = """
CREATE TABLE events (
  event_id STRING, user_id BIGINT, amount DECIMAL(12, 2), event_time TIMESTAMP_LTZ(3), note STRING,
  WATERMARK FOR event_time AS event_time - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'
)
"""
QUERY = """
SELECT CAST(UNIX_TIMESTAMP(CAST(window_start AS STRING)) AS BIGINT), COUNT(*), SUM(amount)
FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(event_time), INTERVAL '{window}' SECONDS))
GROUP BY window_start, window_end
"""


def main(topic: str, servers: str, window: str, jar: str) -> None:
    """Run the job to the topic's end."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {
        "pipeline.jars": f"file://{jar}",
        "parallelism.default": "2",
        "table.local-time-zone": "UTC",
    }.items():
        tables.get_config().set(key, value)
    tables.execute_sql(SOURCE.format(topic=topic, servers=servers))
    with tables.execute_sql(QUERY.format(window=window)).collect() as rows:
        found = {int(start): [count, str(amount)] for start, count, amount in rows}
    print(json.dumps(found), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
