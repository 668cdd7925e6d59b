# remedy: lengths are not sorted: pack_padded_sequence(..., enforce_sorted=False)
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 16, batch_first=True)

    def forward(self, padded, lengths):
        packed = pack_padded_sequence(padded, lengths, batch_first=True)  # <- fault
        out, _ = self.rnn(packed)
        return pad_packed_sequence(out, batch_first=True)[0]


class DocumentModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.reader, self.score = Reader(), nn.Linear(16, 1)

    def forward(self, documents):
        lengths = torch.tensor([len(d) for d in documents])
        return self.score(self.reader(pad_sequence(documents, batch_first=True), lengths))


DocumentModel()([torch.randn(n, 8) for n in (5, 9, 3)])
