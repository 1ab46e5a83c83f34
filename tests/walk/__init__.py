"""A random walk of work and faults on a real stack, after which nothing may differ.

Materialize's Zippy and RisingWave's deterministic tests are the examples: a seed decides every
step, and at quiet points all that was promised is compared.
"""
