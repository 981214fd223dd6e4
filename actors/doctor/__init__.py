"""What a machine needs to run a live system, looked at without starting anything."""
