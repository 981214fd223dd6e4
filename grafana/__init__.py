"""Dashboards for Grafana, generated from the table of metrics: `make dashboards` writes them."""
