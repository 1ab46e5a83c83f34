"""Projects with one error each: name, files that differ from a valid project, condition."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from spark_jobs.sections import GraphSettings

RIGHT = {
    "sources/orders.yml": """\
format: debezium
topic: shop.public.orders
keys: [order_id]
columns:
  order_id: BIGINT
  user_id: BIGINT
  amount: DECIMAL(12,2)
  created_at: TIMESTAMP
""",
    "sources/clicks.yml": """\
format: json
topic: clicks
event_id: event_id
event_time: at
columns: {event_id: STRING, user_id: BIGINT, page: STRING, at: TIMESTAMP}
""",
    "sql/silver/orders.sql": """\
/* silver
description: Orders.
*/
SELECT order_id, user_id, amount, created_at FROM bronze.orders
""",
    "sql/silver/clicks.sql": """\
/* silver
description: Clicks.
*/
SELECT event_id, user_id, page, at FROM bronze.clicks
""",
    "sql/gold/spend.sql": """\
/* gold
description: Spend per user.
owner: analytics
refresh: micro-batch
every: 15 minutes
*/
SELECT o.user_id, SUM(o.amount) AS spend
FROM silver.orders AS o
GROUP BY ALL
""",
    "expectations/gold/spend.json": """\
{
  "name": "spend",
  "expectations": [
    {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "user_id"}}
  ]
}
""",
}


# The schema of a source's records.
PAYMENT = """\
{"type": "record", "name": "Payment", "fields": [
  {"name": "id", "type": "string"},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}
]}
"""


@dataclass(frozen=True)
class Case:
    """A project with an error. A file whose text is None does not exist."""

    name: str
    condition: str
    files: dict[str, str | None] = field(default_factory=dict)
    limits: GraphSettings | None = None


def write_project(directory: Path, files: dict[str, str | None]) -> Path:
    for file, text in {**RIGHT, **files}.items():
        if text is not None:
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            (directory / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    return directory


def _orders(old: str, new: str) -> dict[str, str | None]:
    return _changed("sources/orders.yml", old, new)


def _clicks(old: str, new: str) -> dict[str, str | None]:
    return _changed("sources/clicks.yml", old, new)


def _silver(old: str, new: str) -> dict[str, str | None]:
    return _changed("sql/silver/orders.sql", old, new)


def _gold(old: str, new: str) -> dict[str, str | None]:
    return _changed("sql/gold/spend.sql", old, new)


def _suite(old: str, new: str) -> dict[str, str | None]:
    return _changed("expectations/gold/spend.json", old, new)


def _judged(
    kwargs: dict[str, object],
    *,
    kind: str = "expect_column_values_to_not_be_null",
    header: str = "on_failure: warn",
) -> dict[str, str | None]:
    """A suite of silver.orders with one expectation, a line each for type and arguments."""
    entry = f'{{"type": "{kind}",\n     "kwargs": {json.dumps(kwargs)}}}'
    suite = f'{{\n  "name": "orders",\n  "expectations": [\n    {entry}\n  ]\n}}\n'
    written = _silver("description: Orders.", f"description: Orders.\n{header}")
    return {**written, "expectations/silver/orders.json": suite}


def _changed(file: str, old: str, new: str) -> dict[str, str | None]:
    text = RIGHT[file]
    assert text.count(old) == 1, (file, old)
    return {file: text.replace(old, new)}


def _sinks(*entries: str) -> dict[str, str | None]:
    listed = "".join(f"\n  - {entry}" for entry in entries)
    return _gold("every: 15 minutes", f"every: 15 minutes\nsinks:{listed}")


def _view(select: str, name: str = "view", more: str = "") -> dict[str, str | None]:
    header = RIGHT["sql/gold/spend.sql"].partition("*/")[0] + more
    return {f"sql/gold/{name}.sql": f"{header}*/\n{select}\n"}


def _deprecated(said: str, name: str = "spend") -> dict[str, str | None]:
    return _gold("every: 15 minutes", f"every: 15 minutes\ncolumns:\n  {name}: {said}")


def _avro(schemas: str, schema: str | None = PAYMENT, column: str = "at") -> dict[str, str | None]:
    source = f"""\
format: avro
topic: payments
schemas: {schemas}
event_id: id
columns: {{id: STRING, {column}: TIMESTAMP}}
"""
    return {"sources/payments.yml": source, "schemas/payment.avsc": schema}


def _seed(path: str, content: str = "country,rate\n") -> dict[str, str | None]:
    source = f"""\
format: {path.rpartition(".")[2]}
path: {path}
keys: country
columns: {{country: STRING, rate: "DECIMAL(6,4)"}}
"""
    return {"sources/rates.yml": source, "seeds/" + path.rpartition("/")[2]: content}


def _parquet() -> str:
    file = io.BytesIO()
    parquet.write_table(pa.table({"country": ["de"], "rate": [0.19]}), file)
    return file.getvalue().decode("utf-8", "surrogateescape")


_LAKE = "format: delta\nlocation: /no/table\n"
# The columns of these tables are unknown, so a query over them has no further problem.
_OVER_UNKNOWN = {
    "unqualified_columns": (
        "SELECT k AS k, SUM(v) AS s FROM (SELECT k AS k, CASE WHEN NOT q IS NULL THEN q ELSE p "
        "END AS v FROM bronze.a AS a LEFT JOIN bronze.b AS b ON i = j) AS t GROUP BY k"
    ),
    "a_star": "SELECT x FROM (SELECT * FROM bronze.a ORDER BY 1) AS t",
    "a_position": "SELECT k, v FROM (SELECT * FROM bronze.a GROUP BY 1) AS t",
    "a_union": (
        "SELECT k FROM (SELECT * FROM bronze.a UNION ALL SELECT * FROM bronze.b ORDER BY 1) AS t"
    ),
    "an_exception": "SELECT k FROM (SELECT * EXCEPT (v) FROM bronze.a ORDER BY 1) AS t",
    "a_using": "SELECT k FROM bronze.a JOIN silver.clicks USING (user_id)",
}


CASES = (
    # what a source says
    Case("source_unknown_key", "UNKNOWN_KEY", _orders("topic:", "topik: a\ntopic:")),
    Case(
        "source_column_unknown_key",
        "UNKNOWN_KEY",
        _orders("order_id: BIGINT", "order_id: {type: BIGINT, requried: true}"),
    ),
    Case("source_duplicate_key", "DUPLICATE_KEY", _orders("topic:", "topic: a\ntopic:")),
    Case("source_without_format", "MISSING_KEY", _orders("format: debezium\n", "")),
    Case("kafka_source_without_topic", "MISSING_KEY", _orders("topic: shop.public.orders\n", "")),
    Case("json_source_without_event_id", "MISSING_KEY", _clicks("event_id: event_id\n", "")),
    Case(
        "avro_source_without_schemas",
        "MISSING_KEY",
        _changed("sources/clicks.yml", "format: json", "format: avro"),
    ),
    Case("avro_schemas_are_no_files", "UNEXPECTED_VALUE", _avro("[7]")),
    Case(
        "avro_schema_with_another_id",
        "UNEXPECTED_VALUE",
        _avro("{payments-value: schemas/payment.avsc, 9999999999: schemas/payment.avsc}"),
    ),
    Case("avro_schema_not_there", "AVRO_SCHEMA", _avro("{7: schemas/paiment.avsc}")),
    Case("avro_schema_no_json", "AVRO_SCHEMA", _avro("schemas/payment.avsc", "record Payment")),
    Case(
        "avro_schema_of_a_number", "AVRO_SCHEMA", _avro("[schemas/payment.avsc]", '{"type": "int"}')
    ),
    Case(
        "avro_schema_with_an_unknown_type",
        "AVRO_SCHEMA",
        _avro("[schemas/payment.avsc]", PAYMENT.replace('"string"', '"text"')),
    ),
    Case(
        "avro_schema_without_end",
        "AVRO_SCHEMA",
        _avro("[schemas/payment.avsc]", PAYMENT.replace('"string"', '["null", "Payment"]')),
    ),
    Case(
        "avro_column_without_field", "AVRO_FIELD", _avro("[schemas/payment.avsc]", column="at_time")
    ),
    Case("seed_file_elsewhere", "SEED_FILE", _seed("../rates.csv")),
    Case("seed_header_of_others", "SEED_HEADER", _seed("seeds/rates.csv", "land,rate\n")),
    Case(
        "seed_members_of_others",
        "SEED_HEADER",
        _seed("seeds/rates.jsonl", '\n{"land": "de", "rate": 0.19}\n'),
    ),
    Case("seed_that_is_no_parquet", "SEED_UNREADABLE", _seed("seeds/rates.parquet")),
    Case("seed_of_another_type", "SEED_TYPE", _seed("seeds/rates.parquet", _parquet())),
    Case("delta_source_without_location", "MISSING_KEY", {"sources/lake.yml": "format: delta\n"}),
    Case(
        "source_without_columns",
        "MISSING_KEY",
        {"sources/bare.yml": "format: json\ntopic: bare\nevent_id: id\n"},
    ),
    Case(
        "column_without_type",
        "MISSING_KEY",
        _orders("order_id: BIGINT", "order_id: {required: true}"),
    ),
    Case("unknown_format", "UNEXPECTED_VALUE", _orders("debezium", "debesium")),
    Case("wrong_value_type", "UNEXPECTED_VALUE", _orders("topic: shop.public.orders", "topic: 7")),
    Case("empty_value", "UNEXPECTED_VALUE", _orders("topic: shop.public.orders", 'topic: ""')),
    Case(
        "impossible_topic",
        "UNEXPECTED_VALUE",
        _orders("topic: shop.public.orders", "topic: shop/orders"),
    ),
    Case(
        "topic_of_our_own",
        "UNEXPECTED_VALUE",
        _orders("topic: shop.public.orders", "topic: _tidemark_sinks"),
    ),
    Case(
        "topic_of_connect",
        "UNEXPECTED_VALUE",
        _orders("topic: shop.public.orders", "topic: _connect_offsets"),
    ),
    Case(
        "topic_of_kafka",
        "UNEXPECTED_VALUE",
        _orders("topic: shop.public.orders", "topic: __consumer_offsets"),
    ),
    Case(
        "topic_of_heartbeats",
        "UNEXPECTED_VALUE",
        _orders("topic: shop.public.orders", "topic: __debezium-heartbeat.shop"),
    ),
    Case(
        "topic_of_transactions",
        "UNEXPECTED_VALUE",
        _clicks("topic: clicks", "topic: shop.transaction"),
    ),
    Case("source_not_a_mapping", "UNEXPECTED_VALUE", {"sources/list.yml": "- format\n- topic\n"}),
    Case(
        "event_time_not_a_time", "UNEXPECTED_VALUE", _clicks("event_time: at", "event_time: page")
    ),
    Case(
        "bad_duration",
        "DURATION",
        _clicks("event_id: event_id", "event_id: event_id\nwatermark: a day"),
    ),
    Case("unknown_type", "UNKNOWN_COLUMN_TYPE", _orders("user_id: BIGINT", "user_id: BIGNT")),
    Case(
        "type_of_another_database",
        "UNKNOWN_COLUMN_TYPE",
        _orders("user_id: BIGINT", "user_id: TEXT"),
    ),
    Case("decimal_too_wide", "UNKNOWN_COLUMN_TYPE", _orders("DECIMAL(12,2)", "DECIMAL(39,2)")),
    Case(
        "type_not_closed", "UNKNOWN_COLUMN_TYPE", _orders("user_id: BIGINT", "user_id: ARRAY<INT")
    ),
    Case(
        "key_of_another_format",
        "KEY_NOT_APPLICABLE",
        _clicks("event_id: event_id", "event_id: event_id\nlocation: /lake"),
    ),
    Case(
        "event_id_not_a_column",
        "COLUMN_NOT_DECLARED",
        _clicks("event_id: event_id", "event_id: eventid"),
    ),
    Case(
        "event_time_not_a_column",
        "COLUMN_NOT_DECLARED",
        _clicks("event_time: at", "event_time: happened"),
    ),
    Case("key_not_a_column", "COLUMN_NOT_DECLARED", _orders("[order_id]", "[order_id, shop]")),
    Case(
        "column_twice",
        "DUPLICATE_COLUMN_DECLARATION",
        _orders("user_id: BIGINT", "user_id: BIGINT\n  USER_ID: BIGINT"),
    ),
    Case(
        "reserved_column",
        "RESERVED_COLUMN",
        _orders("user_id: BIGINT", "user_id: BIGINT\n  __x: INT"),
    ),
    Case(
        "column_name", "COLUMN_NAME", _orders("user_id: BIGINT", "user_id: BIGINT\n  user-id: INT")
    ),
    Case("yaml_syntax", "DECLARATION_SYNTAX", _orders("keys: [order_id]", "keys: [order_id")),
    Case("not_utf8", "UNREADABLE_FILE", {"sources/latin.yml": "description: \udce9t\udce9\n"}),
    Case("file_name", "FILE_NAME", {"sources/My-Orders.yml": RIGHT["sources/orders.yml"]}),
    Case("name_twice", "DUPLICATE_NAME", {"sources/orders.yaml": RIGHT["sources/orders.yml"]}),
    Case("topic_twice", "DUPLICATE_TOPIC", {"sources/more.yml": RIGHT["sources/orders.yml"]}),
    Case("misplaced_file", "MISPLACED_FILE", {"sql/bronze/orders.sql": "SELECT 1\n"}),
    Case("no_sources", "EMPTY_PROJECT", dict.fromkeys(RIGHT)),
    Case(
        "delta_table_missing",
        "DELTA_SCHEMA",
        {"sources/lake.yml": "format: delta\nlocation: /no/table\n"},
    ),
    *(
        Case(
            f"delta_tables_missing_below_{name}",
            "DELTA_SCHEMA",
            {"sources/a.yml": _LAKE, "sources/b.yml": _LAKE, **_view(select)},
        )
        for name, select in _OVER_UNKNOWN.items()
    ),
    # headers
    Case("no_header", "MISSING_HEADER", {"sql/gold/view.sql": "SELECT 1 AS a\n"}),
    Case("header_of_no_layer", "MISSING_HEADER", _gold("/* gold", "/* golden")),
    Case("header_not_closed", "MISSING_HEADER", _gold("*/", "")),
    Case("header_in_its_first_line", "MISSING_HEADER", _gold("/* gold\n", "/* gold ")),
    Case("header_of_another_layer", "WRONG_LAYER_HEADER", _gold("/* gold", "/* silver")),
    Case("second_header", "DUPLICATE_HEADER", _gold("*/", "*/\n/* gold\nowner: b\n*/")),
    Case("header_unknown_key", "UNKNOWN_KEY", _gold("owner:", "grian: user_id\nowner:")),
    Case(
        "header_yaml_syntax", "DECLARATION_SYNTAX", _gold("owner: analytics", "owner: [analytics")
    ),
    Case("gold_without_owner", "MISSING_KEY", _gold("owner: analytics\n", "")),
    Case(
        "contract_version_zero",
        "UNEXPECTED_VALUE",
        _gold("every: 15 minutes", "every: 15 minutes\ncontract: strict\ncontract_version: 0"),
    ),
    Case("header_without_columns", "UNEXPECTED_VALUE", _gold("owner:", "columns:\nowner:")),
    Case("gold_without_every", "MISSING_KEY", _gold("every: 15 minutes\n", "")),
    Case("bulk_with_drifting_every", "SCHEDULE", _gold("micro-batch\nevery: 15", "bulk\nevery: 7")),
    Case("bad_schedule", "CRON", _gold("every: 15 minutes", 'schedule: "30 6 * *"')),
    Case("schedule_out_of_range", "CRON", _gold("every: 15 minutes", 'schedule: "61 6 * * *"')),
    Case("schedule_never_due", "CRON", _gold("every: 15 minutes", 'schedule: "0 0 31 2 *"')),
    Case(
        "every_and_schedule",
        "KEY_NOT_APPLICABLE",
        _gold("every: 15 minutes", 'every: 15 minutes\nschedule: "30 6 * * *"'),
    ),
    Case(
        "bad_time_zone",
        "TIME_ZONE",
        _gold("every: 15 minutes", 'schedule: "30 6 * * *"\ntime_zone: CEST'),
    ),
    Case(
        "time_zone_of_a_period",
        "KEY_NOT_APPLICABLE",
        _gold("every: 15 minutes", "every: 15 minutes\ntime_zone: Europe/Berlin"),
    ),
    Case(
        "transactions_of_no_database",
        "KEY_NOT_APPLICABLE",
        _gold(
            "*/\nSELECT o.user_id, SUM(o.amount) AS spend\nFROM silver.orders AS o",
            "consistency: transactional\n*/\n"
            "SELECT c.user_id, COUNT(*) AS spend\nFROM silver.clicks AS c",
        ),
    ),
    Case("unknown_consistency", "UNEXPECTED_VALUE", _gold("*/", "consistency: eventual\n*/")),
    Case("unknown_policy", "UNEXPECTED_VALUE", _gold("micro-batch", "microbatch")),
    Case("bad_every", "DURATION", _gold("15 minutes", "fifteen minutes")),
    Case("drifting_schedule", "SCHEDULE", _gold("15 minutes", "7 minutes")),
    Case(
        "drifting_verification",
        "SCHEDULE",
        _gold("every: 15 minutes", "every: 15 minutes\nverify: 7 minutes"),
    ),
    Case("continuous_with_every", "KEY_NOT_APPLICABLE", _gold("micro-batch", "continuous")),
    Case(
        "history_of_events",
        "KEY_NOT_APPLICABLE",
        _changed("sql/silver/clicks.sql", "description:", "stored_as_scd_type: 2\ndescription:"),
    ),
    Case(
        "history_by_a_number",
        "UNEXPECTED_VALUE",
        _silver("description:", "stored_as_scd_type: 2\nsequence_by: user_id\ndescription:"),
    ),
    Case(
        "history_with_a_column_of_its_own",
        "DUPLICATE_COLUMN",
        _silver(
            "description: Orders.\n*/\nSELECT order_id",
            "stored_as_scd_type: 2\ndescription: Orders.\n*/\n"
            "SELECT created_at AS Valid_From, order_id",
        ),
    ),
    # Rows that expire
    Case("ttl_of_a_view", "KEY_NOT_APPLICABLE", _gold("owner:", "ttl: 90 days\nowner:")),
    Case(
        "ttl_of_history",
        "KEY_NOT_APPLICABLE",
        _silver(
            "description:",
            "stored_as_scd_type: 2\nttl: 90 days\nexpire_by: created_at\ndescription:",
        ),
    ),
    Case(
        "ttl_that_views_outlive",
        "UNEXPECTED_VALUE",
        _changed(
            "sql/silver/clicks.sql", "description:", "ttl: 90 days\non_expiry: keep\ndescription:"
        ),
    ),
    Case(
        "ttl_of_hours",
        "UNEXPECTED_VALUE",
        _changed("sql/silver/clicks.sql", "description:", "ttl: 36 hours\ndescription:"),
    ),
    Case("ttl_by_nothing", "UNEXPECTED_VALUE", _silver("description:", "ttl: 1 day\ndescription:")),
    Case(
        "ttl_by_a_number",
        "UNEXPECTED_VALUE",
        _silver("description:", "ttl: 1 day\nexpire_by: user_id\ndescription:"),
    ),
    Case(
        "ttl_by_a_column_not_given",
        "KEY_NOT_IN_OUTPUT",
        _silver("description:", "ttl: 1 day\nexpire_by: creatd_at\ndescription:"),
    ),
    Case(
        "expire_by_without_ttl",
        "KEY_NOT_APPLICABLE",
        _silver("description:", "expire_by: created_at\ndescription:"),
    ),
    Case("changes_without_keys", "MISSING_KEY", _orders("keys: [order_id]\n", "")),
    Case(
        "scd_type_three",
        "UNEXPECTED_VALUE",
        _silver("description:", "stored_as_scd_type: 3\ndescription:"),
    ),
    # SQL
    Case("sql_syntax", "SQL_SYNTAX", _gold("GROUP BY ALL", "GROUP BY (ALL")),
    Case("comma_too_many", "SQL_SYNTAX", _gold("AS spend", "AS spend,")),
    Case(
        "quote_not_closed",
        "SQL_SYNTAX",
        _gold("GROUP BY ALL", "WHERE o.user_id = 'a\nGROUP BY ALL"),
    ),
    Case(
        "totals_of_groups", "FOREIGN_CLAUSE", _gold("GROUP BY ALL", "GROUP BY user_id WITH TOTALS")
    ),
    Case("locked_rows", "FOREIGN_CLAUSE", _gold("GROUP BY ALL", "GROUP BY ALL FOR UPDATE")),
    Case("steps_of_a_query", "PIPE_SYNTAX", _gold("GROUP BY ALL", "GROUP BY ALL\n|> LIMIT 3")),
    Case(
        "parameter_without_a_value",
        "UNBOUND_PARAMETER",
        _gold("GROUP BY ALL", "WHERE o.user_id = :user\nGROUP BY ALL"),
    ),
    Case(
        "alias_with_too_few_names",
        "ALIAS_COLUMNS",
        _view("SELECT s.a FROM (SELECT order_id, user_id FROM silver.orders) AS s(a)"),
    ),
    Case(
        "values_with_too_many_names",
        "ALIAS_COLUMNS",
        _view("SELECT v.a FROM VALUES (1), (2) AS v(a, b) JOIN silver.orders ON order_id = a"),
    ),
    Case("two_statements", "NOT_ONE_SELECT", _gold("GROUP BY ALL", "GROUP BY ALL;\nSELECT 1 AS a")),
    Case("not_a_select", "NOT_ONE_SELECT", _view("DELETE FROM silver.orders")),
    Case("no_statement", "NOT_ONE_SELECT", _view("-- nothing yet")),
    Case("unknown_table", "UNKNOWN_TABLE", _gold("silver.orders", "silver.ordres")),
    Case("table_without_layer", "UNKNOWN_TABLE", _gold("silver.orders", "orders")),
    Case(
        "fixed_version",
        "FORBIDDEN_INPUT",
        _gold("silver.orders", "silver.orders VERSION AS OF 3"),
    ),
    Case("gold_reads_bronze", "FORBIDDEN_INPUT", _gold("silver.orders", "bronze.orders")),
    Case(
        "silver_reads_gold",
        "FORBIDDEN_INPUT",
        {"sql/silver/more.sql": "/* silver\n*/\nSELECT user_id FROM gold.spend\n"},
    ),
    Case("deprecated_on_no_day", "UNEXPECTED_VALUE", _deprecated("{deprecated: soon}")),
    Case("deprecated_on_a_text", "UNEXPECTED_VALUE", _deprecated('{deprecated: "2027-02-30"}')),
    Case("deprecated_at_a_time", "UNEXPECTED_VALUE", _deprecated("{deprecated: 2027-01-31 10:00}")),
    Case("deprecated_misspelt", "UNKNOWN_KEY", _deprecated("{depricated: 2027-01-31}")),
    Case("deprecated_nothing", "UNKNOWN_COLUMN", _deprecated("{deprecated: 2027-01-31}", "spned")),
    Case(
        "deprecated_for_nothing",
        "UNKNOWN_COLUMN",
        _deprecated("{deprecated: 2027-01-31, use: user}"),
    ),
    Case("used_instead_of_what_stays", "KEY_NOT_APPLICABLE", _deprecated("{use: user_id}")),
    Case("column_described_by_a_number", "UNEXPECTED_VALUE", _deprecated("5")),
    Case("unknown_column", "UNKNOWN_COLUMN", _gold("o.amount", "o.amonut")),
    Case("unknown_column_unqualified", "UNKNOWN_COLUMN", _gold("o.amount", "amonut")),
    Case("unknown_column_alone", "UNKNOWN_COLUMN", _view("SELECT amonut FROM silver.orders")),
    Case(
        "unknown_column_under_its_own_name",
        "UNKNOWN_COLUMN",
        _view(
            "SELECT o.user_id, SUM(amonut) AS amonut FROM silver.orders AS o "
            "JOIN silver.clicks AS c ON c.user_id = o.user_id GROUP BY o.user_id"
        ),
    ),
    Case(
        "relation_name_twice",
        "DUPLICATE_RELATION",
        _view("SELECT o.user_id FROM silver.orders AS o JOIN silver.clicks AS o ON TRUE"),
    ),
    Case("sql_too_deep", "SQL_TOO_DEEP", _view(f"SELECT {'(' * 999}1{')' * 999} AS one")),
    Case("unknown_column_in_silver", "UNKNOWN_COLUMN", _silver("amount,", "amonut AS amount,")),
    Case(
        "unknown_using_column",
        "UNKNOWN_COLUMN",
        _view("SELECT o.user_id FROM silver.orders AS o JOIN silver.clicks AS c USING (order_id)"),
    ),
    Case("unknown_relation", "UNKNOWN_RELATION", _gold("SUM(o.amount)", "SUM(x.amount)")),
    Case(
        "ambiguous_column",
        "AMBIGUOUS_COLUMN",
        _view(
            "SELECT user_id FROM silver.orders AS o JOIN silver.clicks AS c ON c.page = o.user_id"
        ),
    ),
    Case("unknown_function", "UNKNOWN_FUNCTION", _gold("SUM(", "SUMM(")),
    Case(
        "function_arguments",
        "FUNCTION_ARGUMENTS",
        _gold("SUM(o.amount)", "ROUND(SUM(o.amount), 2, 1)"),
    ),
    Case(
        "function_argument_missing",
        "FUNCTION_ARGUMENTS",
        _gold("SUM(o.amount)", "COALESCE(SUM())"),
    ),
    Case("select_star", "SELECT_STAR", _view("SELECT * FROM silver.orders")),
    Case(
        "select_star_of_subquery",
        "SELECT_STAR",
        _view(
            "SELECT * FROM (SELECT COUNT(*) AS n, o.user_id FROM silver.orders AS o GROUP BY ALL)"
        ),
    ),
    Case("select_star_of_alias", "SELECT_STAR", _view("SELECT o.* FROM silver.orders AS o")),
    Case(
        "column_given_twice",
        "DUPLICATE_COLUMN",
        _view("SELECT user_id, order_id AS User_Id FROM silver.orders"),
    ),
    Case("column_without_name", "UNNAMED_COLUMN", _gold("SUM(o.amount) AS spend", "SUM(o.amount)")),
    Case("output_column_name", "COLUMN_NAME", _gold("AS spend", "AS `total spend`")),
    Case("output_reserved_name", "RESERVED_COLUMN", _gold("AS spend", "AS __spend")),
    Case(
        "silver_join",
        "SILVER_NOT_A_PROJECTION",
        _silver("FROM bronze.orders", "FROM bronze.orders JOIN bronze.clicks AS c USING (user_id)"),
    ),
    Case(
        "silver_group",
        "SILVER_NOT_A_PROJECTION",
        _silver("FROM bronze.orders", "FROM bronze.orders GROUP BY ALL"),
    ),
    Case("silver_distinct", "SILVER_NOT_A_PROJECTION", _silver("SELECT", "SELECT DISTINCT")),
    Case(
        "silver_window",
        "SILVER_NOT_A_PROJECTION",
        _silver("amount,", "SUM(amount) OVER (PARTITION BY user_id) AS amount,"),
    ),
    Case("silver_key_not_given", "KEY_NOT_IN_OUTPUT", _silver("SELECT order_id, ", "SELECT ")),
    Case(
        "silver_keys_of_other_rows",
        "TABLE_KEYS_DIFFER",
        _silver("description:", "keys: [order_id, user_id]\ndescription:"),
    ),
    Case("grain_not_given", "KEY_NOT_IN_OUTPUT", _gold("owner:", "grain: [user]\nowner:")),
    Case(
        "keys_of_appended_table",
        "KEY_NOT_APPLICABLE",
        _changed(
            "sql/silver/clicks.sql",
            "description:",
            "keys: [event_id]\nsequence_by: at\ndescription:",
        ),
    ),
    Case(
        "header_expression",
        "UNKNOWN_COLUMN",
        _silver("description:", "apply_as_deletes: _op = 'd'\ndescription:"),
    ),
    Case(
        "header_expression_syntax",
        "SQL_SYNTAX",
        _silver("description:", "sequence_by: (created_at\ndescription:"),
    ),
    Case(
        "header_expression_arguments",
        "SQL_SYNTAX",
        _silver("description:", "sequence_by: ROUND(order_id, 1, 2)\ndescription:"),
    ),
    Case("random", "NONDETERMINISTIC", _gold("SUM(o.amount)", "SUM(o.amount) + rand()")),
    Case("limit_without_order", "NONDETERMINISTIC", _gold("GROUP BY ALL", "GROUP BY ALL LIMIT 3")),
    Case(
        "strict_whole_result",
        "STRICT_NOT_INCREMENTAL",
        _view(
            "SELECT STDDEV(o.amount) AS many FROM silver.orders AS o",
            "counted",
            "strategy: strict\n",
        ),
    ),
    Case(
        "contract_of_an_unknown_type",
        "CONTRACT_TYPE_UNKNOWN",
        _view(
            "SELECT o.user_id, ROUND(o.amount, 1) AS about FROM silver.orders AS o",
            "rounded",
            "contract: strict\n",
        ),
    ),
    Case(
        "version_of_no_contract",
        "KEY_NOT_APPLICABLE",
        _gold("owner: analytics", "owner: analytics\ncontract_version: 2"),
    ),
    Case(
        "layout_of_two_kinds",
        "KEY_NOT_APPLICABLE",
        _silver("description:", "partition_by: user_id\ncluster_by: order_id\ndescription:"),
    ),
    Case(
        "layout_by_an_unknown_column",
        "KEY_NOT_IN_OUTPUT",
        _gold("owner: analytics", "owner: analytics\npartition_by: [user_id, userid]"),
    ),
    Case(
        "partitions_that_delta_refuses",
        "LAYOUT_COLUMN",
        {
            **_view(
                "SELECT COLLECT_LIST(o.amount) AS amounts, COUNT(*) AS orders\n"
                "FROM silver.orders AS o",
                "nested",
                "partition_by: amounts\n",
            ),
            **_view("SELECT o.user_id FROM silver.orders AS o", "alone", "partition_by: user_id\n"),
            **_view(
                "SELECT o.user_id, o.order_id FROM silver.orders AS o",
                "twice",
                "partition_by: [user_id, USER_ID]\n",
            ),
        },
    ),
    Case(
        "partitions_by_personal_data",
        "LAYOUT_COLUMN",
        {
            # The mark of the silver table reaches the view, too.
            **_silver("description:", "pii: [user_id]\npartition_by: user_id\ndescription:"),
            **_gold("owner: analytics", "owner: analytics\npartition_by: user_id"),
        },
    ),
    Case(
        "partitions_by_a_text_key",
        "LAYOUT_COLUMN",
        {
            # The key of a table of changes, and the event id of a table of events.
            "sql/silver/orders.sql": """\
/* silver
description: Orders.
keys: code
partition_by: [day, CODE]
*/
SELECT CAST(order_id AS STRING) AS code, CAST(created_at AS DATE) AS day, user_id, amount
FROM bronze.orders
""",
            "sql/silver/clicks.sql": """\
/* silver
description: Clicks.
partition_by: event_id
*/
SELECT event_id, user_id, page, at FROM bronze.clicks
""",
        },
    ),
    Case(
        "clustering_that_delta_refuses",
        "LAYOUT_COLUMN",
        {
            **_view(
                "SELECT o.user_id, o.amount > 1 AS large FROM silver.orders AS o",
                "flag",
                "cluster_by: [user_id, large]\n",
            ),
            **_view(
                "SELECT o.user_id, ROUND(o.amount, 1) AS about FROM silver.orders AS o",
                "rounded",
                "cluster_by: about\n",
            ),
            **_view(
                "SELECT 1 AS a, 2 AS b, 3 AS c, 4 AS d, o.user_id FROM silver.orders AS o",
                "many",
                "cluster_by: [a, b, c, d, user_id]\n",
            ),
            **_view(
                f"SELECT {', '.join(f'{at} AS c{at}' for at in range(32))},\n  o.user_id\n"
                "FROM silver.orders AS o",
                "far",
                "cluster_by: user_id\n",
            ),
        },
    ),
    Case(
        "cycle",
        "CYCLE",
        {
            **_view("SELECT user_id FROM gold.b", "a"),
            **_view("SELECT user_id FROM gold.c", "b"),
            **_view("SELECT user_id FROM gold.a", "c"),
        },
    ),
    # sinks
    Case("sink_unknown_system", "UNKNOWN_KEY", _sinks("kafak: {topic: spend}")),
    Case("sink_unknown_key", "UNKNOWN_KEY", _sinks("kafka: {topic: spend, formt: upsert}")),
    Case("sink_without_topic", "MISSING_KEY", _sinks("kafka: {format: upsert}")),
    Case("sink_unknown_format", "UNEXPECTED_VALUE", _sinks("kafka: {topic: spend, format: upsrt}")),
    Case("sink_no_list", "UNEXPECTED_VALUE", _gold("every", "sinks: {redis: {prefix: a}}\nevery")),
    Case("sink_no_mapping", "UNEXPECTED_VALUE", _sinks("redis")),
    Case("sink_empty", "UNEXPECTED_VALUE", _sinks("{}")),
    Case(
        "sink_of_two_systems",
        "UNEXPECTED_VALUE",
        _sinks("{kafka: {topic: spend}, redis: {prefix: spend}}"),
    ),
    Case(
        "sink_targets",
        "SINK_TARGET",
        _sinks(
            "kafka: {topic: _spend, name: Spend}",
            "postgres: {table: Serving.spend}",
            "postgres: {table: pg_catalog.spend, name: other}",
            'redis: {prefix: "spend*"}',
            'redis: {prefix: "tidemark:", name: another}',
            "cassandra: {table: spend}",
            "cassandra: {table: system_auth.spend, name: third}",
            "cassandra: {table: shop.tidemark_sinks, name: fourth}",
        ),
    ),
    Case("sink_to_a_source", "DUPLICATE_SINK", _sinks("kafka: {topic: clicks}")),
    Case(
        "sink_places_twice",
        "DUPLICATE_SINK",
        _sinks(
            "postgres: {table: spend}",
            "postgres: {table: public.spend, name: again}",
            'redis: {prefix: "spend:"}',
            'redis: {prefix: "spend:more:", name: more}',
        ),
    ),
    Case(
        "too_many_tiers",
        "GRAPH_TOO_DEEP",
        {
            **_view("SELECT s.user_id\nFROM gold.spend AS s", "above"),
            **_view("SELECT a.user_id\nFROM silver.orders AS o, gold.above AS a", "top"),
            **_view("SELECT t.user_id FROM gold.top AS t", "beyond"),
        },
        GraphSettings(most_tiers=2),
    ),
    Case(
        "too_many_readers",
        "TOO_MANY_READERS",
        {
            **_view("SELECT o.user_id\nFROM silver.orders AS o", "users"),
            **_view("SELECT c.page FROM silver.clicks AS c, silver.orders AS o", "pages"),
        },
        GraphSettings(most_readers=2),
    ),
    Case(
        "sink_names_twice",
        "DUPLICATE_SINK",
        _sinks('redis: {prefix: "a:"}', 'redis: {prefix: "b:"}'),
    ),
    Case("sink_unknown_column", "KEY_NOT_IN_OUTPUT", _sinks("kafka: {topic: a, keys: [userid]}")),
    Case("sink_key_not_unique", "SINK_KEYS", _sinks("kafka: {topic: a, keys: [spend]}")),
    Case(
        "sink_without_keys",
        "SINK_KEYS",
        _view(
            "SELECT o.user_id FROM silver.orders AS o",
            "users",
            "sinks:\n  - kafka: {topic: users}\n",
        ),
    ),
    # suites
    Case(
        "suite_of_no_table",
        "SUITE_WITHOUT_TABLE",
        {
            "expectations/gold/spent.json": RIGHT["expectations/gold/spend.json"].replace(
                '"spend"', '"spent"'
            )
        },
    ),
    Case("unknown_expectation", "UNKNOWN_EXPECTATION", _suite("_to_not_be_null", "_to_not_be_nul")),
    Case(
        "unknown_argument",
        "UNKNOWN_EXPECTATION_ARGUMENT",
        _suite('"column": "user_id"', '"column": "user_id", "mosty": 1'),
    ),
    Case("missing_argument", "MISSING_EXPECTATION_ARGUMENT", _suite('"column": "user_id"', "")),
    Case("suite_column_by_number", "UNEXPECTED_VALUE", _suite('"user_id"', "1")),
    Case(
        "suite_columns_in_a_text",
        "UNEXPECTED_VALUE",
        _suite(
            'expect_column_values_to_not_be_null", "kwargs": {"column": "user_id"}',
            'expect_compound_columns_to_be_unique", "kwargs": {"column_list": "user_id"}',
        ),
    ),
    Case(
        "suite_without_a_number",
        "EXPECTATION_VALUE",
        _suite(
            'values_to_not_be_null", "kwargs": {"column": "user_id"',
            'values_to_be_between", "kwargs": {"column": "user_id", "min_value": NaN',
        ),
    ),
    Case("suite_unknown_column", "UNKNOWN_COLUMN", _suite('"user_id"', '"userid"')),
    Case("suite_severity", "UNEXPECTED_VALUE", _suite('"type"', '"severity": "criticl", "type"')),
    Case("suite_syntax", "DECLARATION_SYNTAX", _suite('"name": "spend",', '"name": "spend"')),
    Case(
        "suite_empty",
        "EMPTY_SUITE",
        {"expectations/gold/spend.json": '{"name": "spend", "expectations": []}\n'},
    ),
    Case("suite_name", "SUITE_NAME", _suite('"name": "spend"', '"name": "spent"')),
    # suites of silver tables
    Case(
        "silver_on_failure",
        "UNEXPECTED_VALUE",
        _judged({"column": "user_id"}, header="on_failure: quarantin"),
    ),
    Case(
        "on_failure_without_suite",
        "KEY_NOT_APPLICABLE",
        _silver("description: Orders.", "description: Orders.\non_failure: warn"),
    ),
    Case("silver_suite_column", "UNKNOWN_COLUMN", _judged({"column": "userid"})),
    Case(
        "silver_suite_period",
        "UNKNOWN_COLUMN",
        _judged({"column": "valid_to"}, header="stored_as_scd_type: 2"),
    ),
    Case(
        "silver_expectation",
        "SILVER_EXPECTATION",
        _judged({"column": "amount", "max_value": 9}, kind="expect_column_mean_to_be_between"),
    ),
    Case(
        "silver_expectation_argument",
        "SILVER_EXPECTATION_ARGUMENT",
        _judged({"column": "user_id", "row_condition": "amount > 0"}),
    ),
    Case(
        "silver_expectation_value",
        "EXPECTATION_VALUE",
        _judged(
            {"column": "created_at", "min_value": "yesterday"},
            kind="expect_column_values_to_be_between",
        ),
    ),
    Case(
        "silver_quarantine_of_a_batch",
        "QUARANTINE_WHOLE_BATCH",
        _judged(
            {"min_value": 1},
            kind="expect_table_row_count_to_be_between",
            header="on_failure: quarantine",
        ),
    ),
    Case(
        "silver_quarantine_of_a_share",
        "QUARANTINE_WHOLE_BATCH",
        _judged({"column": "user_id", "mostly": 0.9}, header="on_failure: quarantine"),
    ),
)
