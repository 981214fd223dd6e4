"""Grafana dashboards, generated from the metric table by `make dashboards`."""
