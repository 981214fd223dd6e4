"""Measures a running domain: rates, latency, staleness, operator times, decisions; its status and metrics."""
