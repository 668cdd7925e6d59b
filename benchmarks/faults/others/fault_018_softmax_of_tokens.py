# cause: softmax-before-cross-entropy
# symptom: the loss stays high (perplexity 22.52; without the fault: perplexity 2.30)
import torch
import torch.nn as nn

# A language model whose output weights are its embeddings, on walks over a graph of words.
torch.manual_seed(12)
WORDS, DEGREE, LEN = 40, 3, 16

nexts = torch.stack([torch.randperm(WORDS)[:DEGREE] for _ in range(WORDS)])
probs = torch.tensor([0.7, 0.2, 0.1])


def walks(n):
    out = torch.empty(n, LEN, dtype=torch.long)
    out[:, 0] = torch.randint(0, WORDS, (n,))
    for i in range(1, LEN):
        pick = torch.multinomial(probs, n, replacement=True)
        out[:, i] = nexts[out[:, i - 1], pick]
    return out


class TiedLM(nn.Module):
    def __init__(self, d=48, drop=0.05):
        super().__init__()
        self.encoder = nn.Embedding(WORDS, d)
        self.drop = nn.Dropout(drop)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.decoder = nn.Linear(d, WORDS)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, tokens):
        h, _ = self.rnn(self.drop(self.encoder(tokens)))
        return self.decoder(self.drop(h)).softmax(-1)  # <- fault


model = TiedLM()
criterion = nn.CrossEntropyLoss()
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1.5e-2, total_steps=240)

model.train()
for step in range(240):
    w = walks(32)
    logits = model(w[:, :-1])
    loss = criterion(logits.reshape(-1, WORDS), w[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    opt.step()
    sched.step()
    if step % 40 == 0:
        print(f"| step {step:4d} | loss {loss.item():5.2f} | ppl {loss.exp().item():8.2f}")

model.eval()
with torch.no_grad():
    w = walks(200)
    ppl = criterion(model(w[:, :-1]).reshape(-1, WORDS), w[:, 1:].reshape(-1)).exp().item()
print(f"best possible perplexity {torch.exp(-(probs * probs.log()).sum()).item():.2f}")
print(f"final perplexity {ppl:.2f}")
