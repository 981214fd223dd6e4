"""Long runs: more than can be done, and much for a long time."""
