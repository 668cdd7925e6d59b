# remedy: a bidirectional LSTM gives 2 * hidden_size features: nn.Linear(128, 5)
import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, vocab=100, emb=32, hidden=64, tags=5):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.hidden2tag = nn.Sequential(nn.Dropout(0.1), nn.Linear(hidden, tags))  # <- fault

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.hidden2tag(states)  # <- fault


class Pipeline(nn.Module):
    def __init__(self):
        super().__init__()
        self.tagger = Tagger()

    def forward(self, batch):
        return self.tagger(batch["tokens"]).argmax(-1)


print(Pipeline()({"tokens": torch.randint(0, 100, (4, 12))}).shape)
