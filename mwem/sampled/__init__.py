"""MWEM whose distribution is a sample of records, for domains too large for an explicit one."""
