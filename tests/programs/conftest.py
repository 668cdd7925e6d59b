"""The runner runs the programs in `scripts`; pytest does not import them."""

collect_ignore = ["scripts"]
