"""How many of the mistakes in a corpus of programs the doctor finds, and what it says of programs without one.

A program of the corpus is a training script with one mistake. Its first line names the cause, `# cause: NAME`, and the
line with the mistake, or the one beside which a line is missing, ends with `# <- fault`. `healthy/` has programs that
look suspicious and are not; the examples and the programs of the tests are run as well. Most programs are another one
with a few lines changed: `patches.py` keeps them so.
"""
