"""The scheduling loop and its parts: policy interface, ready order, queues, statistics, watermarks, runners."""
