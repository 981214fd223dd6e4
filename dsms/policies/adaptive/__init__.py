"""The adaptive policy: a selector that swaps candidate policies by quality of service."""
