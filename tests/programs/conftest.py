"""The programs are run by the runner, not imported by pytest."""

collect_ignore = ["scripts"]
