"""The commands of the live system; each loads Ray only when it runs."""
