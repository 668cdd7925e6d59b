"""Settings of all tests."""

import os

from hypothesis import settings

# The same examples in every run, so that a change is judged by what it changes. Run with
# HYPOTHESIS_PROFILE=explore to look for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
