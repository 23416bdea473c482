"""Where replies come from. Only this package talks to the network."""
