# cause: train-missing
"""A small convolutional network on drawn images: bars, crosses and squares."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

torch.manual_seed(4)


class Shapes(Dataset):
    def __init__(self, n):
        self.images = torch.rand(n, 1, 12, 12) * 0.3
        self.labels = torch.randint(0, 4, (n,))
        for image, label in zip(self.images, self.labels):
            r, c = torch.randint(2, 8, (2,)).tolist()
            if label == 0:
                image[0, r, 2:10] += 0.7
            elif label == 1:
                image[0, 2:10, c] += 0.7
            elif label == 2:
                image[0, r, c - 2 : c + 3] += 0.7
                image[0, r - 2 : r + 3, c] += 0.7
            else:
                image[0, r - 1 : r + 2, c - 1 : c + 2] += 0.7

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(16 * 3 * 3, 4)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        x = self.pool(F.relu(self.conv2(x)))
        x = x.flatten(1)
        return self.fc(x)


train_data, test_data = Shapes(640), Shapes(160)
train_dl = DataLoader(train_data, batch_size=32, shuffle=True)
test_dl = DataLoader(test_data, batch_size=32)
net = CNN()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

net.train()
for epoch in range(4):
    running = 0.0
    for images, labels in tqdm(train_dl, disable=None):
        optimizer.zero_grad()
        outputs = net(images)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    net.eval()  # <- fault
    hits = 0
    with torch.no_grad():
        for images, labels in test_dl:
            hits += (net(images).argmax(1) == labels).sum().item()
    print(epoch, running / len(train_dl), hits / len(test_data))
