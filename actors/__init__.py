"""dsms on Ray: operators are actors; what to run next is decided by the engine of `dsms`, unchanged."""
