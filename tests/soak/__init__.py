"""A soak: evaluations by the hundred with everything that can go wrong around them, and what must hold after each."""
