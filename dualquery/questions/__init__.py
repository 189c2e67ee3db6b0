"""Questions in words: what people ask of a table, read, written and brought to linear forms."""
