"""`torch.distributed.elastic.multiprocessing`: how the processes report errors."""
