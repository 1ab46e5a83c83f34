"""What a refresh would do, its SQL, and what a change would make refreshes compute."""
