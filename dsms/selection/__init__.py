"""Choosing among policies while a plan runs: what each has done, what each would do, and who is let decide."""
