"""The first linear layer does not fit the features of the convolutions.

Module: classifier.0
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(8 * 14 * 14, 16), nn.ReLU(), nn.Linear(16, 10))
        #! self.classifier = nn.Sequential(nn.Linear(1352, 16), nn.ReLU(), nn.Linear(16, 10))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


Net()(torch.zeros(2, 1, 28, 28))
