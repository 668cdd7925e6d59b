"""`torch.fx.experimental`: nothing is traced (floor 4)."""
