"""What is known of a gold view before a refresh: its context, its publications, its status."""
