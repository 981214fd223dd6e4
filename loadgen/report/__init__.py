"""What recorded runs show, worked out with Spark: tables of figures, and a page to look at them."""
