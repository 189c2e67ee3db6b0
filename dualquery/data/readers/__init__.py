"""One module for each format of data: they turn bytes or objects into blocks of rows."""
