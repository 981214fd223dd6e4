"""Host processes: they hold operators and their queues, and run the turns that a scheduler grants."""
