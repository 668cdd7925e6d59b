# cause: nll-without-log-softmax
# symptom: the loss is negative and falls without end
import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, n_words, n_tags, emb=16, hidden=24):
        super().__init__()
        self.emb = nn.Embedding(n_words, emb)
        self.gru = nn.GRU(emb, hidden, batch_first=True)
        self.scores = nn.Linear(hidden, n_tags)

    def forward(self, words):
        states, _ = self.gru(self.emb(words))
        return self.scores(states)  # <- fault


def corpus(n, length=8, n_words=40):
    words = torch.randint(0, n_words, (n, length))
    # tag of a word hangs on its group of ten and on whether the word before was "even"
    before = torch.cat([torch.zeros(n, 1, dtype=torch.long), words[:, :-1]], dim=1)
    tags = (words // 10 + (before % 2)) % 4
    return words, tags


def main():
    torch.manual_seed(7)
    words, tags = corpus(1000)
    dev_words, dev_tags = corpus(200)
    net = Tagger(40, 4)
    criterion = nn.NLLLoss()  # <- fault
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(6):
        shuffled = torch.randperm(len(words))
        epoch_loss = 0.0
        for start in range(0, len(words), 50):
            pick = shuffled[start:start + 50]
            optimizer.zero_grad()
            out = net(words[pick])
            loss = criterion(out.reshape(-1, 4), tags[pick].reshape(-1))  # <- fault
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimizer.step()
            epoch_loss += loss.item()
        with torch.no_grad():
            good = (net(dev_words).argmax(-1) == dev_tags).float().mean().item()
        print("epoch", epoch, "loss %.3f" % (epoch_loss / 20), "dev accuracy %.3f" % good)


main()
