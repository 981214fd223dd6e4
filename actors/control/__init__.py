"""The control actor of a deployment, calls of it from other processes, and tables of its status."""
