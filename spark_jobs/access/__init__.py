"""How a client proves who it is, and knows whom it talks to.

Every client of Kafka, PostgreSQL and Spark Connect gets its options here, so that what the setting
``security.enabled`` demands is demanded of all of them.
"""
