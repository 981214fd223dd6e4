"""Babcock et al.: "Chain: Operator Scheduling for Memory Minimization in Data Stream Systems", SIGMOD 2003."""
