"""Calls to Ray actors and the translation of Ray's errors into ours."""
