"""From the change feed of a table to Kafka, Postgres and Redis."""
