"""The console: a live page in the browser with charts, tables and controls of one deployment."""
