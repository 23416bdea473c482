"""The loop from a problem to an accepted kernel, and the events it yields."""
