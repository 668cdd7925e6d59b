# cause: step-missing
# symptom: the loss falls slowly and stops early (share of right tokens 0.804; without the fault: share of right tokens 0.896)
import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(2)
SOS, EOS, LETTERS, LEN = 0, 1, 10, 6
VOCAB = LETTERS + 2


class EncoderRNN(nn.Module):
    def __init__(self, vocab, hidden):
        super(EncoderRNN, self).__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, src):
        _, hidden = self.gru(self.embedding(src))
        return hidden


class DecoderRNN(nn.Module):
    def __init__(self, vocab, hidden):
        super(DecoderRNN, self).__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, token, hidden):
        output, hidden = self.gru(self.embedding(token), hidden)
        return self.out(output), hidden


def pairs(n):
    src = torch.randint(2, VOCAB, (n, LEN))
    tgt = torch.cat([src.flip(1), torch.full((n, 1), EOS)], dim=1)
    return src, tgt


encoder = EncoderRNN(VOCAB, 64)
decoder = DecoderRNN(VOCAB, 64)
encoder_optimizer = optim.Adam(encoder.parameters(), lr=4e-3)
decoder_optimizer = optim.Adam(decoder.parameters(), lr=4e-3)
criterion = nn.CrossEntropyLoss()


def train_step(src, tgt):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    hidden = encoder(src)
    dec_in = torch.cat([torch.full((len(src), 1), SOS), tgt[:, :-1]], dim=1)
    logits, _ = decoder(dec_in, hidden)
    loss = criterion(logits.flatten(0, 1), tgt.flatten())
    loss.backward()  # <- fault
    decoder_optimizer.step()
    return loss.item()


@torch.no_grad()
def translate(src):
    hidden = encoder(src)
    token = torch.full((len(src), 1), SOS)
    result = []
    for _ in range(LEN + 1):
        logits, hidden = decoder(token, hidden)
        token = logits.argmax(-1)
        result.append(token)
    return torch.cat(result, dim=1)


for i in range(1, 401):
    loss = train_step(*pairs(64))
    if i % 80 == 0:
        print("%d (%d%%) %.4f" % (i, i * 100 // 400, loss))

src, tgt = pairs(200)
tokens = (translate(src) == tgt).float().mean().item()
print(f"final share of right tokens {tokens:.3f}")
