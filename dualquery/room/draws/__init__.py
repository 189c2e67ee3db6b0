"""Private draws: selections and reports."""
