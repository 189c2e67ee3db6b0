"""Generated rows: public tables without real people, computed bit by bit on demand."""
