"""`torch.distributed.elastic`: the parts of the launcher `torchrun` that programs use."""
