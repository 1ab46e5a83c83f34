"""Translates queries to DuckDB's SQL where both engines agree; all others are left to Spark.

The translation is a closed list: each operator and function follows Spark's rules for types,
rounding and NULL, and is missing where DuckDB would differ. An error at run time (overflow,
division by zero) is not a result: Spark then computes the query and reports its own error.
"""
