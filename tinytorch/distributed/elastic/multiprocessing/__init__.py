"""`torch.distributed.elastic.multiprocessing`: how errors of the processes are told."""
