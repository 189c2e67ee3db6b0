"""The audit: tries to refute what releases state, by enumeration, by brute force and by runs."""
