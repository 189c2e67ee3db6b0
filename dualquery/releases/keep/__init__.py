"""A release as a folder, and the place that it is made in."""
