"""Delta tables below a storage root, and the Spark sessions that read and write them.

The only package that knows Delta: locations of tables, their logs, and how they are written.
"""
