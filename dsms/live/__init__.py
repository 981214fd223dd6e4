"""A live domain: an engine in its own thread with admission, quarantine, watchdog, migration and monitoring."""
