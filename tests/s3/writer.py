"""A Spark driver that appends rows to a table and prints which were acknowledged.

``python -m tests.s3.writer PROJECT LOCATION NAME ROWS CONF``, with the environment of a stack; CONF
is more of Spark's configuration, as JSON. It waits for a line on its input, so that several can
start at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from spark_jobs.settings import load_settings
from spark_jobs.storage.session import QUIET, driver_session


def main(project: str, location: str, name: str, rows: str, conf: str) -> None:
    settings = load_settings(Path(project))
    spark = driver_session(settings, name, conf={**QUIET, **json.loads(conf)})
    spark.sql(f"SELECT COUNT(*) FROM delta.`{location}`").collect()
    print("ready", flush=True)
    sys.stdin.readline()
    acknowledged = []
    for number in range(int(rows)):
        try:
            row = spark.createDataFrame([(name, number)], "writer STRING, number INT")
            row.coalesce(1).write.format("delta").mode("append").save(location)
            acknowledged.append(number)
        except Exception as error:  # noqa: BLE001 - what is not acknowledged is only told
            print(f"{name} {number}: {str(error)[:500]}", file=sys.stderr)
    print(json.dumps(acknowledged), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
