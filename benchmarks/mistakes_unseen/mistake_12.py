# remedy: cut the state from the last batch's graph: state = tuple(s.detach() for s in state)
import torch
import torch.nn as nn

text = torch.randint(0, 20, (4, 81))
embed, lstm, head = nn.Embedding(20, 16), nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 20)
model = nn.ModuleList([embed, lstm, head])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

state = None
for i in range(0, 80, 20):
    x, y = text[:, i : i + 20], text[:, i + 1 : i + 21]
    out, state = lstm(embed(x), state)  # <- fault
    loss = nn.functional.cross_entropy(head(out).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()  # <- fault
    optimizer.step()
