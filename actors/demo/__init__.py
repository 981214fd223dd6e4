"""The demonstration: four queries of a shop, a bursty load, and one policy after the other in charge."""
