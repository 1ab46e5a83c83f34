"""Terminal output that commands share: consoles, steps, bytes as text, crash reports."""
