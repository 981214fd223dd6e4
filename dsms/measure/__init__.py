"""What a run costs and yields: memory, latency, staleness, and the lower bound on memory."""
