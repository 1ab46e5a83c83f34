"""The graph as Airflow DAGs, through a blueprint that is plain data."""
