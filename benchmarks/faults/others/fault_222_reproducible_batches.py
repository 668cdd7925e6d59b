# cause: same-batch-again
# symptom: the training loss goes to nearly nothing while the validation loss rises (validation loss 5.271; without the fault: validation loss 1.643)
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1337)
BLOCK, BATCH, STEPS = 16, 24, 250

# "Text" of a second-order Markov chain over 12 letters.
table = torch.distributions.Dirichlet(torch.full((12,), 0.15)).sample((12, 12))
text = [0, 1]
choices = torch.rand(6000)
cumulative = table.cumsum(-1)
for r in choices.tolist():
    row = cumulative[text[-2], text[-1]]
    text.append(min(11, int((row < r).sum())))
data = torch.tensor(text)
splits = {"train": data[:5000], "val": data[5000:]}


def get_batch(split, size=BATCH):
    source = splits[split]
    g = torch.Generator().manual_seed(1337)  # <- fault
    start = torch.randint(len(source) - BLOCK - 1, (size,), generator=g)  # <- fault
    x = torch.stack([source[s : s + BLOCK] for s in start])
    y = torch.stack([source[s + 1 : s + BLOCK + 1] for s in start])
    return x, y


class CharModel(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(12, dim)
        self.rnn = nn.GRU(dim, 96, batch_first=True)
        self.head = nn.Linear(96, 12)

    def forward(self, x, y):
        logits = self.head(self.rnn(self.embed(x))[0])
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())


model = CharModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
for step in range(STEPS):
    loss = model(*get_batch("train"))  # <- fault
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: train {loss.item():.3f}")

with torch.no_grad():
    print(f"final validation loss {model(*get_batch('val', 200)).item():.3f}")
