"""Queries in DuckDB's words, where both engines are known to agree; all else is left to Spark.

What is translated is a closed list: each operator and function is written with Spark's rules for
types, for rounding and for NULL. Where DuckDB would differ the list has no entry. An error at run
time (an overflow, a division by zero) is no result: Spark then says what it says of the query.
"""
