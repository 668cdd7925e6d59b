import math

import torch
import torch.nn as nn
from torch import Tensor


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 50):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class Classifier(nn.Module):
    def __init__(self, vocab, d_model=16, nhead=4, d_hid=32, nlayers=2, dropout=0.1, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model, padding_idx=0)
        self.pos = PositionalEncoding(d_model, dropout)
        layer = nn.TransformerEncoderLayer(d_model, nhead, d_hid, dropout, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, nlayers)
        self.d_model = d_model
        self.head = nn.Linear(d_model, classes)
        self.init_weights()

    def init_weights(self) -> None:
        initrange = 0.1
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.head.bias.data.zero_()
        self.head.weight.data.uniform_(-initrange, initrange)

    def forward(self, src: Tensor, mask: Tensor | None = None) -> Tensor:
        pad = src == 0
        x = self.pos(self.embedding(src.t()) * math.sqrt(self.d_model))
        x = self.encoder(x, mask=mask, src_key_padding_mask=pad)
        x = x.masked_fill(pad.t().unsqueeze(-1), 0.0).sum(0) / (~pad).sum(1, keepdim=True)
        return self.head(x)


vocab, seq = 20, 10
src = torch.randint(1, vocab, (32, seq))
lengths = torch.randint(4, seq + 1, (32,))
src[torch.arange(seq)[None, :] >= lengths[:, None]] = 0
labels = (src == 7).sum(1).clamp(max=2)
model = Classifier(vocab)
print(model)
print(
    sum(p.numel() for p in model.parameters() if p.requires_grad),
    [n for n, _ in model.named_buffers()],
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.95)
for epoch in range(6):
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(src), labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    print(f"{epoch} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.4f}")
model.eval()
causal = nn.Transformer.generate_square_subsequent_mask(seq)
print(causal[:3, :3], causal.dtype)
out = model(src)
print(out.shape, (out.argmax(-1) == labels).float().mean())
mha = nn.MultiheadAttention(8, 2, batch_first=True)
q = torch.randn(2, 4, 8)
attn, weights = mha(
    q, q, q, attn_mask=nn.Transformer.generate_square_subsequent_mask(4), is_causal=False
)
print(attn.shape, weights)
