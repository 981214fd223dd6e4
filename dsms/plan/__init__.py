"""Plans: streams, operators placed as stations, queries, and the segments that policies schedule."""
