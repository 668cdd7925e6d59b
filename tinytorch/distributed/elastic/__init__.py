"""`torch.distributed.elastic`: what programs see of the launcher `torchrun`."""
