"""Linear algebra: products, factorisations, systems; what of it is named by `torch` itself."""
