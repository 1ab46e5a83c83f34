"""The guard in Spark, alone: what passes it and what does not, whatever the gate says."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from spark_jobs.graph.query import query_tables
from spark_jobs.graph.sql import delta_relation, masked_relation, pin_tables
from spark_jobs.storage.guard import ONLY_DELTA, AllowedTable, Policy, enforced
from tests.properties.grammar import Grammar
from tests.properties.tables import TYPES
from tests.spark.exploits import PLAIN

MASKED = masked_relation(
    delta_relation("{people}", 0), [("name", "string"), ("age", "bigint")], {"name", "age"}
)
RIGHT = {
    "nothing": "SELECT 1 AS a",
    "a table": "SELECT count(*) AS n FROM delta.`{table}` VERSION AS OF 0 AS t",
    "a view": "SELECT * FROM __given",
    "masks": f"SELECT p.name, p.age FROM {MASKED} AS p JOIN {MASKED} AS q ON p.name = q.name",
    "windows": "SELECT row_number() OVER (PARTITION BY city ORDER BY city) AS n,"
    " window(TIMESTAMP '2026-01-01', '1 hour').start AS w FROM delta.`{table}` VERSION AS OF 0",
    "generators": "SELECT e, f FROM VALUES (array(1, 2)) AS t (a) LATERAL VIEW explode(a) x AS e"
    " LATERAL VIEW OUTER posexplode(a) y AS f, g",
    "lateral": "SELECT * FROM range(3) AS r, LATERAL (SELECT r.id + 1 AS next)",
    "recursion": "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3)"
    " SELECT sum(n) AS s FROM t",
    "pivot": "SELECT * FROM VALUES (1, 'a') AS t (x, y) PIVOT (sum(x) FOR y IN ('a', 'b'))",
    "unpivot": "SELECT * FROM VALUES (1, 2) AS t (x, y) UNPIVOT (v FOR k IN (x, y))",
    "sets": "SELECT city, count(*) FROM delta.`{table}` VERSION AS OF 0 GROUP BY ROLLUP (city)"
    " HAVING count(*) > 0 ORDER BY ALL LIMIT 3 OFFSET 1",
    "spread": "SELECT id FROM range(3) DISTRIBUTE BY id SORT BY id",
    "operators": "SELECT 'a' || 'b', 1 <=> 2, ~1, 2 % 3, NOT true, a BETWEEN 1 AND 2, a IN (1),"
    " a LIKE 'x', CAST(a AS STRING) ILIKE 'y', extract(DAY FROM DATE '2026-01-01'), a::STRING,"
    " transform(array(a), x -> x + 1), named_struct('k', a).k, map('k', a)['k'], a ^ 1, -a"
    " FROM VALUES (1) AS t (a)",
    "pipes": "FROM range(3) |> WHERE id > 1 |> AGGREGATE sum(id) AS s |> EXTEND s + 1 AS t",
    "set operations": "SELECT 1 AS a EXCEPT SELECT 2 INTERSECT ALL SELECT 3 UNION SELECT 4",
    "formats": "SELECT from_avro(x'00', '\"int\"') AS a, from_xml('<r><a>1</a></r>', 'a INT') AS b,"
    " schema_of_xml('<r><a>1</a></r>') AS c, to_avro(1) AS d",
    "samples": "SELECT * FROM (SELECT id FROM range(9)) TABLESAMPLE (3 ROWS)",
}
LEAKS = {
    "as it is": "SELECT name FROM delta.`{people}` VERSION AS OF 0",
    "all columns": "SELECT * FROM delta.`{people}` VERSION AS OF 0",
    "no projection": "TABLE delta.`{people}`",
    "a condition": "SELECT 1 AS a FROM delta.`{people}` VERSION AS OF 0 WHERE name = 'ann'",
    "a join": "SELECT 1 AS a FROM delta.`{people}` VERSION AS OF 0 AS p"
    " JOIN VALUES ('ann') AS v (x) ON p.name = v.x",
    "an order": "SELECT age IS NULL AS a FROM delta.`{people}` VERSION AS OF 0 ORDER BY name",
    "a correlation": "SELECT IF(name IS NULL, NULL, 'x') AS a, (SELECT max(v.x) FROM"
    " VALUES ('ann') AS v (x) WHERE v.x = p.name) AS b FROM delta.`{people}` VERSION AS OF 0 AS p",
    "half a mask": "SELECT IF(name IS NULL, NULL, name) AS a FROM delta.`{people}` VERSION AS OF 0",
}


@dataclass(frozen=True)
class Lake:
    """Two tables, of which one holds personal data, and what a query of them may read."""

    folder: Path

    @property
    def policy(self) -> Policy:
        people = AllowedTable(f"{self.folder}/people", 0, frozenset({"name", "age"}))
        return Policy((AllowedTable(f"{self.folder}/a table", 0), people), ("__given",))

    def sql(self, text: str) -> str:
        places = {name: f"{self.folder}/{name}" for name in ("people", "bronze", "output")}
        return text.format(table=f"{self.folder}/a table", secret=self.folder / "secret", **places)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("guarded"))
    for table in ("a table", "bronze"):
        for _ in range(2):
            rows = pa.table({"city": ["Bonn"]})
            write_deltalake(lake.folder / table, rows, mode="append")
    write_deltalake(lake.folder / "people", pa.table({"name": ["ann"], "age": [7]}))
    (lake.folder / "secret").write_text("a secret")
    spark.createDataFrame([(1,)], "a INT").createOrReplaceTempView("__given")
    return lake


@pytest.mark.parametrize("name", RIGHT)
def test_read_only_queries_pass(spark: SparkSession, lake: Lake, name: str) -> None:
    with enforced(spark, lake.policy):
        rows = spark.sql(lake.sql(RIGHT[name])).limit(5).collect()
    if name == "masks":
        assert [tuple(row) for row in rows] == [("***", None)]


@pytest.mark.parametrize("name", [*PLAIN, *LEAKS])
def test_all_other_statements_are_refused(spark: SparkSession, lake: Lake, name: str) -> None:
    text = lake.sql({**PLAIN, **LEAKS}[name])
    with (
        enforced(spark, lake.policy),
        pytest.raises(Exception, match=r"\[QUERY_NOT_READ_ONLY\] "),
    ):
        spark.sql(text).collect()
    assert not (lake.folder / "output").exists()


def test_a_policy_may_hold_for_a_thread(spark: SparkSession, lake: Lake) -> None:
    guard = spark.sparkContext._jvm.tidemark.Guard  # type: ignore[union-attr]
    guard.hold(lake.policy.text())
    try:
        with pytest.raises(Exception, match=r"\[QUERY_NOT_READ_ONLY\] it reads text"):
            spark.sql(lake.sql(PLAIN["a file"]))
        assert spark.sql(lake.sql(RIGHT["a table"])).collect()[0]["n"] == 1
    finally:
        guard.hold("")


def test_sessions_without_a_policy_call_no_java_either(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="java_method may not be called"):
        spark.sql("SELECT java_method('java.lang.System', 'nanoTime')").collect()


def test_xml_brings_no_file(spark: SparkSession, lake: Lake) -> None:
    """Whoever writes the XML in a row names the file, or an address in the server's network."""
    declared = lake.folder / "declared.dtd"
    declared.write_text("<!ELEMENT a ANY>")
    for name in (declared.as_uri(), "http://127.0.0.1:9/"):
        text = f'<!DOCTYPE a SYSTEM "{name}"><a>b</a>'
        with pytest.raises(Exception, match="accessExternalDTD"):
            spark.sql(f"SELECT xpath_string('{text}', '/a')").collect()
    assert spark.sql("SELECT xpath_string('<a>b</a>', '/a')").collect()[0][0] == "b"


# What these say is no matter of files, or refused in every session.
ELSEWHERE = {"another Delta table", "another version", "names", "a setting", "a view", "a jar"}


@pytest.fixture(scope="module")
def only_delta(spark: SparkSession) -> SparkSession:
    """A session as the endpoint's are, in which no policy holds."""
    session = spark.newSession()
    session.conf.set(ONLY_DELTA, "true")
    return session


@pytest.mark.parametrize("name", sorted(PLAIN.keys() - ELSEWHERE))
def test_a_session_may_read_delta_alone_without_any_policy(
    only_delta: SparkSession, lake: Lake, name: str
) -> None:
    with pytest.raises(Exception, match=r"\[QUERY_NOT_READ_ONLY\] |PROTOBUF|DELTA_"):
        only_delta.sql(lake.sql(PLAIN[name])).collect()
    assert not (lake.folder / "output").exists()
    assert not only_delta.catalog.tableExists("t")


def test_a_session_of_delta_alone_reads_its_tables(only_delta: SparkSession, lake: Lake) -> None:
    for name in ("a table", "windows", "lateral", "sets"):
        only_delta.sql(lake.sql(RIGHT[name])).collect()
    for view, name in (("TEMPORARY", "listed"), ("GLOBAL TEMPORARY", "global_temp.listed")):
        only_delta.sql(f"CREATE OR REPLACE {view} VIEW listed AS SELECT 1 AS a")
        assert only_delta.sql(f"SELECT a FROM {name}").collect()[0]["a"] == 1


def test_queries_that_people_ask_pass(spark: SparkSession, lake: Lake) -> None:
    for name, columns in TYPES.items():
        values = ", ".join(f"CAST(NULL AS {kind}) AS {one}" for one, kind in columns.items())
        spark.sql(f"SELECT {values}").write.format("delta").save(f"{lake.folder}/{name}")
    relations = {name: delta_relation(f"{lake.folder}/{name}", 0) for name in TYPES}
    policy = Policy(tuple(AllowedTable(f"{lake.folder}/{name}", 0) for name in TYPES))
    grammar = Grammar(random.Random(11))
    with enforced(spark, policy):
        for _ in range(20):
            text = grammar.query()
            assert query_tables(text, known=TYPES)
            assert spark.sql(pin_tables(text, relations)).columns
