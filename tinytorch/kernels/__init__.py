"""Arrays in, arrays out, never a Tensor: what ops compute with; and of arrays the dtypes, places in memory, threads.

Modules here import NumPy alone. Every kernel of an op that is not a function of NumPy is here, and so are the steps of
optimizers and what saved programs need besides.
"""
