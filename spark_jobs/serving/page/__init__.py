"""The status page: one HTML file."""
