"""The trivial mechanisms that every result is printed beside, each at its best."""
