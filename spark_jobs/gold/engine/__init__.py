"""The engines that compute a refresh, Spark and DuckDB, behind one interface."""
