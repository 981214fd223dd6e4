"""The Spark session, the data source `dsms_load`, the data sink `dsms`, and the driver of a load."""
