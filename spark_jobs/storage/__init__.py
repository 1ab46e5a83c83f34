"""Delta tables on a storage root, and the Spark sessions that reach them.

The only package that says "delta": where tables lie, what their logs say, how they are written.
"""
