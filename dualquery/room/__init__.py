"""The private room: private rows enter it, and differentially private results leave it."""
