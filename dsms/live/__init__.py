"""A plan that runs for as long as it is wanted: steered, measured and changed while it does."""
