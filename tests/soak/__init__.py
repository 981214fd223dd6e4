"""Long runs on Ray: overload, and endurance at high load."""
