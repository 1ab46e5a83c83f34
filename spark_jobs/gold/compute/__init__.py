"""Computing a refresh: pinned relations, incremental programs, aggregate state, differences."""
