"""The ops of neural networks."""
