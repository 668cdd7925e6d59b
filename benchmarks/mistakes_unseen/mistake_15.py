# remedy: the mask has a channel too much: criterion(model(image), mask.squeeze(1))
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

images = torch.randn(12, 3, 20, 20)
masks = torch.randint(0, 4, (12, 1, 20, 20))
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 4, 1))
criterion = nn.CrossEntropyLoss(ignore_index=255)
optimizer = torch.optim.Adam(model.parameters())
for image, mask in DataLoader(TensorDataset(images, masks), batch_size=4):
    optimizer.zero_grad()
    loss = criterion(model(image), mask)  # <- fault
    loss.backward()
    optimizer.step()
