"""Linear algebra: products, factorizations, linear systems, and the functions of `torch` itself."""
