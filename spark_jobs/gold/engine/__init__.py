"""What computes a refresh: Spark or DuckDB, behind one interface; callers do not know which."""
