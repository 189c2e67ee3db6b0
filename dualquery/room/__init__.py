"""The private room: all that reads private rows, and all that its charges rest on. Start with
README.md.
"""
