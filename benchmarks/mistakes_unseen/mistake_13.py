# remedy: the names begin with "module.", take it off: {k.removeprefix("module."): v for k, v in state.items()}
import torch
import torch.nn as nn
import io


def build():
    return nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2))


class Parallel(nn.Module):
    """As DataParallel: the model under the name 'module'."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args):
        return self.module(*args)


checkpoint = io.BytesIO()
torch.save({"epoch": 3, "model": Parallel(build()).state_dict()}, checkpoint)
checkpoint.seek(0)

model = build()
model.load_state_dict(torch.load(checkpoint)["model"])  # <- fault
