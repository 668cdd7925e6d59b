"""The engine, which knows no op, and the facts that it stands on. Imports nothing: each module is asked for by name."""
