"""What lies here is run by several processes, not collected."""

collect_ignore_glob = ["*.py"]
