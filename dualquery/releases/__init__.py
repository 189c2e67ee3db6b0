"""A release: how it is made, its folder, answers from it, and its evaluation."""
