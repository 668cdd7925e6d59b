# cause: layers-in-list
# symptom: two thirds of the layers are not trained (micro F1 0.782; without the fault: micro F1 0.967)
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(40)

# "Documents" as counts of 60 words; each has some of 6 topics.
TOPICS, VOCAB = 6, 60
topic_words = torch.distributions.Dirichlet(torch.full((VOCAB,), 0.1)).sample((TOPICS,))


def documents(n):
    labels = (torch.rand(n, TOPICS) < 0.3).float()
    labels[labels.sum(1) == 0, 0] = 1.0
    mix = labels / labels.sum(1, keepdim=True)
    rates = 40 * (0.9 * mix @ topic_words + 0.1 / VOCAB)
    return torch.log1p(torch.poisson(rates)), labels


train_set, val_set = random_split(TensorDataset(*documents(2000)), [0.8, 0.2])


class TopicNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(VOCAB, 64), nn.Linear(64, 32)]  # <- fault
        self.out = nn.Linear(32, TOPICS)

    def forward(self, x):
        for layer in self.layers:
            x = nn.functional.silu(layer(x))
        return self.out(x)


model = TopicNet()
positives = torch.stack([y for _, y in train_set]).mean(0)
criterion = nn.BCEWithLogitsLoss(pos_weight=(1 - positives) / positives)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    losses = []
    for x, y in DataLoader(train_set, batch_size=40, shuffle=True):
        logits = model(x)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")

tp = fp = fn = 0
with torch.no_grad():
    for x, y in DataLoader(val_set, batch_size=100):
        guess = torch.sigmoid(model(x)) > 0.5
        tp += (guess & (y == 1)).sum().item()
        fp += (guess & (y == 0)).sum().item()
        fn += (~guess & (y == 1)).sum().item()
print(f"final micro F1 {2 * tp / (2 * tp + fp + fn):.3f}")
