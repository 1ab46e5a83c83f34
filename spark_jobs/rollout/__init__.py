"""Planning and applying a change of the project: the facts, the steps, and previews."""
