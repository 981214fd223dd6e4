"""The bursty load for a running system, generated with Spark."""
