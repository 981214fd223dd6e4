"""The commands that use Spark: `dsms load`, `dsms trace` and `dsms report`."""
