"""The evaluation worker: a process of its own that compiles, runs and times what nobody has verified yet."""
