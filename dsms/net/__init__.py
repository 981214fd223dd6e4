"""The network protocol, the Python client, access tokens and TLS certificates."""
