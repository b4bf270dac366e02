"""The gateway: listeners, client connections, upstream links, addresses, audit sinks, metrics."""
