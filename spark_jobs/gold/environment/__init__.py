"""Gold views in a virtual environment: built beside production, and published from there."""
