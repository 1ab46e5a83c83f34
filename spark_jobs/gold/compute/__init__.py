"""What a refresh computes: relations at pinned versions, programs, aggregate state, differences."""
