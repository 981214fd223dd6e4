"""Gateways: client connections, the log of incoming rows, and its delivery to schedulers."""
