"""Sinks: deliver the net changes of tables to Kafka, Postgres, Redis and Cassandra."""
