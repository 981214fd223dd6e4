"""Where rows come from and go to on disk: CSV, JSON lines and Parquet; the one place that knows pyarrow."""
