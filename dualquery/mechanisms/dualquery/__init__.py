"""DualQuery: the zero-sum game between a private query player and a record player."""
