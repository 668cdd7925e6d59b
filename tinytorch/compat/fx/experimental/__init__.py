"""`torch.fx.experimental`: nothing is traced."""
