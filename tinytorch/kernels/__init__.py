"""Arrays in, arrays out, never a Tensor: what ops compute with; and of arrays the dtypes, places in memory, threads.

NumPy alone is imported. Here are every kernel that is no function of NumPy, the steps of optimizers, and what saved
programs need besides.
"""
