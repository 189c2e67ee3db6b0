"""Budget files: what all releases of one data set may cost together, and have cost so far."""
