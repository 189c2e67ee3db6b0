"""Distributions over records that a release keeps: they answer and give records for ever, free."""
