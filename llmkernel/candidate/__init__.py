"""A candidate: one `.cu` file, its launch header, and what can be said of it without running it."""
