"""Plans and applies a change of the project: facts, steps, previews, environments, promotion."""
