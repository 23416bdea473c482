"""Where candidates run: `cuda` and `cpu`, behind one interface."""
