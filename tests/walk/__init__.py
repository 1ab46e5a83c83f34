"""A random walk: work and faults on a real stack, with all data compared at quiet points.

It follows Materialize's Zippy and RisingWave's deterministic simulation tests: a seed determines
every step.
"""
