"""Authentication of clients, and verification of servers.

Every client of Kafka, PostgreSQL and Spark Connect gets its options here, so that
``security.enabled`` applies to all of them.
"""
