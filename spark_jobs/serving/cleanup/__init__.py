"""What ``tidemark maintain`` may remove."""
