"""Tools for inspection: profiles, summaries of models, and timings."""
