"""Gateways: client connections, the log of incoming rows, and the dispatch of rows to schedulers."""
