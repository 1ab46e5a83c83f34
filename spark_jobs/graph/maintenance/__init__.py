"""Incremental maintenance: derives from a view's SQL the SQL of its change.

A query becomes a tree of relational operators (``algebra``, built by ``query``). ``relation``
writes the SQL of an operator's content before or after a change, and ``delta`` that of the change
itself, as rows with a signed weight. A change of a multiset is a Z-set: Budiu et al., "DBSP:
Automatic Incremental View Maintenance", VLDB 2023. Joins are telescoped as in Gupta and Mumick,
"Maintenance of Materialized Views", 1995. Operators without a linear rule are recomputed for the
affected groups only.
"""
