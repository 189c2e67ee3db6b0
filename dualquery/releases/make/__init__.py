"""How a release is planned, priced, paid for and run."""
