"""A batch of objects that are neither tensors nor numbers."""

import torch
from torch.utils.data import DataLoader


class Sample:
    pass


loader = DataLoader([Sample(), Sample()], batch_size=2)
#! loader = DataLoader([Sample(), Sample()], batch_size=2, collate_fn=list)
for batch in loader:
    pass
