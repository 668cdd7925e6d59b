"""Tensor, the graph and the engine, which know no op. Imports nothing: each module is asked for by name."""
