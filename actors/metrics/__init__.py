"""Serves a deployment's metrics to Prometheus."""
