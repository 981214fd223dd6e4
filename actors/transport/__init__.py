"""Messages between actors through sockets: encoding, addresses, listeners and channels."""
