"""To look at what happens: pictures of graphs, profiles, summaries of models, timings."""
