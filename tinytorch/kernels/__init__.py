"""Arrays in, arrays out, never a Tensor: what ops compute with; and of arrays the dtypes, places in memory, threads."""
