"""The live page in the browser: one look at the system a moment for all who watch, charts as plain data, controls."""
