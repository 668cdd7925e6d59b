"""A Python whose `numpy.intp` has 32 bits: a browser's (wasm32), a 32-bit ARM board's.

`calls` runs calls that give or take indices, and every sample of `tests/samples`, and prints the dtypes of the results;
`pretence` makes NumPy answer as it does there. `tests/test_narrow.py` compares what the first prints with and without
the second. On a real machine of 32 bits:

    python -m tests.narrow.calls > there.json         # on that machine
    python -m tests.narrow.calls there.json           # on one of 64 bits: prints what differs
"""
