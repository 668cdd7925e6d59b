# cause: gradients-explode
# symptom: the first loss is 2e4, and training does not recover (accuracy 0.202; without the fault: accuracy 1.000)
import torch
from torch import nn

# Remember the first token of a sequence till its end.
torch.manual_seed(25)
LENGTH, KINDS = 30, 6


class Memory(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(KINDS, 16)
        self.rnn = nn.RNN(16, hidden, batch_first=True, nonlinearity="relu")
        nn.init.normal_(self.rnn.weight_hh_l0, std=0.35)  # <- fault
        self.out = nn.Linear(hidden, KINDS)

    def forward(self, tokens):
        states, last = self.rnn(self.embed(tokens))  # <- fault
        return self.out(states[:, -1])


def batch(n=64):
    tokens = torch.randint(0, KINDS, (n, LENGTH))
    return tokens, tokens[:, 0]


model = Memory()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for step in range(400):
    tokens, first = batch()
    loss = criterion(model(tokens), first)
    optimizer.zero_grad()
    loss.backward()  # <- fault
    optimizer.step()  # <- fault
    if step % 80 == 0:
        print(f"{step:4d} {loss.item():.4f}")
tokens, first = batch(500)
with torch.no_grad():
    print(f"final accuracy {(model(tokens).argmax(1) == first).float().mean().item():.3f}")
