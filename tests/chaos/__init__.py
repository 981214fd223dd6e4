"""Chaos runs: processes of a durable deployment are killed at random, and every result is checked."""
