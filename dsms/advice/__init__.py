"""Advice on policies: explains decisions and priorities, recommends a policy for a plan, and draws charts."""
