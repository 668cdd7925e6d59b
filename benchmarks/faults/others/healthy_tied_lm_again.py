"""Word model with tied input and output embeddings, gradient accumulation and learning-rate warmup."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, CONTEXT, ACCUM = 30, 12, 4


class TiedLM(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        nn.init.normal_(self.embed.weight, std=dim ** -0.5)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)
        self.out.weight = self.embed.weight  # tied

    def forward(self, tokens):
        h, _ = self.rnn(self.embed(tokens))
        return self.out(h)


def corpus(n, gen):
    """Each word has one likely successor (90 %), else a random one."""
    nxt = torch.randperm(VOCAB, generator=gen)
    word = torch.randint(0, VOCAB, (n,), generator=gen)
    rows = [word]
    for _ in range(CONTEXT):
        jump = torch.rand(n, generator=gen) < 0.1
        word = torch.where(jump, torch.randint(0, VOCAB, (n,), generator=gen), nxt[word])
        rows.append(word)
    return torch.stack(rows, 1)


def main():
    torch.manual_seed(10)
    data = corpus(1100, torch.Generator().manual_seed(10))
    train, valid = data[:960], data[960:]
    model = TiedLM()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    warmup = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 40))
    micro = 0
    for epoch in range(5):
        epoch_loss = []
        for rows in train[torch.randperm(len(train))].split(10):
            logits = model(rows[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
            (loss / ACCUM).backward()
            micro += 1
            epoch_loss.append(loss.item())
            if micro % ACCUM == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                warmup.step()
                opt.zero_grad()
        with torch.no_grad():
            v = F.cross_entropy(model(valid[:, :-1]).flatten(0, 1), valid[:, 1:].flatten()).item()
        print(f"epoch {epoch} train {sum(epoch_loss) / len(epoch_loss):.4f} valid {v:.4f} lr {opt.param_groups[0]['lr']:.4f}")


main()
