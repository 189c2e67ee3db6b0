"""Best-response problems as files that others can use, made again bit for bit."""
