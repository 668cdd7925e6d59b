# A TransformerEncoder language model with masks, translation with nn.Transformer, einsum attention, SDPA.
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn import TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer

torch.manual_seed(0)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 100):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.pe[: x.size(0)])


class TransformerModel(nn.Module):
    def __init__(self, ntoken, d_model, nhead, d_hid, nlayers, dropout=0.1):
        super().__init__()
        self.pos_encoder = PositionalEncoding(d_model, dropout)
        self.transformer_encoder = TransformerEncoder(TransformerEncoderLayer(d_model, nhead, d_hid, dropout, activation="gelu", norm_first=True), nlayers, enable_nested_tensor=False)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.d_model = d_model
        self.linear = nn.Linear(d_model, ntoken)
        self.init_weights()

    def init_weights(self) -> None:
        self.embedding.weight.data.uniform_(-0.1, 0.1)
        self.linear.bias.data.zero_()
        self.linear.weight.data.uniform_(-0.1, 0.1)

    def forward(self, src: Tensor, src_mask: Tensor = None) -> Tensor:
        src = self.pos_encoder(self.embedding(src) * math.sqrt(self.d_model))
        if src_mask is None:
            src_mask = nn.Transformer.generate_square_subsequent_mask(len(src))
        return self.linear(self.transformer_encoder(src, src_mask, is_causal=True))


stream = torch.cumsum(torch.randint(1, 3, (400,)), 0) % 11
data = stream.view(10, 40).t().contiguous()
model = TransformerModel(11, 24, 3, 32, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.95)
for epoch in range(2):
    model.train()
    for i in range(0, data.size(0) - 1, 13):
        n = min(13, len(data) - 1 - i)
        output = model(data[i : i + n])
        loss = F.cross_entropy(output.view(-1, 11), data[i + 1 : i + 1 + n].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    scheduler.step()
    print(f"{epoch} {loss.item():.4f} ppl {math.exp(loss.item()):.3f} lr {scheduler.get_last_lr()}")
model.eval()
with torch.no_grad():
    a = model(data[:8])
    changed = data[:8].clone()
    changed[6] = (changed[6] + 1) % 11
    b = model(changed)
    print("causal", (a - b).abs().amax((1, 2)) > 1e-6)

PAD, BOS = 0, 1
net = nn.Transformer(d_model=16, nhead=2, num_encoder_layers=1, num_decoder_layers=2, dim_feedforward=24, dropout=0.0, batch_first=True)
src_emb, tgt_emb, gen = nn.Embedding(10, 16, padding_idx=PAD), nn.Embedding(10, 16, padding_idx=PAD), nn.Linear(16, 10)
modules = nn.ModuleList([net, src_emb, tgt_emb, gen])
for p in modules.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
opt = torch.optim.Adam(modules.parameters(), lr=3e-3, betas=(0.9, 0.98), eps=1e-9)


def batch(n):
    lengths = torch.randint(3, 7, (n,))
    src = torch.randint(2, 10, (n, 6)).masked_fill(torch.arange(6) >= lengths[:, None], PAD)
    tgt = torch.cat([torch.full((n, 1), BOS), src.flip(1).sort(dim=1, stable=True)[0]], 1)
    return src, tgt


for step in range(6):
    src, tgt = batch(16)
    tgt_in, tgt_out = tgt[:, :-1], tgt[:, 1:]
    causal = nn.Transformer.generate_square_subsequent_mask(tgt_in.size(1))
    out = net(src_emb(src), tgt_emb(tgt_in), tgt_mask=causal, src_key_padding_mask=src == PAD, memory_key_padding_mask=src == PAD)
    loss = F.cross_entropy(gen(out).transpose(1, 2), tgt_out, ignore_index=PAD)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 2:
        print("seq2seq", f"{loss.item():.4f}")

with torch.no_grad():
    memory = net.encoder(src_emb(src[:3]), mask=None, src_key_padding_mask=src[:3] == PAD)
    ys = torch.full((3, 1), BOS)
    for _ in range(4):
        mask = torch.triu(torch.ones(ys.size(1), ys.size(1), dtype=torch.bool), diagonal=1)
        o = net.decoder(tgt_emb(ys), memory, tgt_mask=mask, memory_key_padding_mask=src[:3] == PAD)
        ys = torch.cat([ys, gen(o[:, -1]).argmax(-1, keepdim=True)], dim=1)
print(ys.shape)

mha = nn.MultiheadAttention(12, 3, dropout=0.0, batch_first=True, kdim=8, vdim=10, add_bias_kv=True)
q, k, v = torch.randn(2, 4, 12), torch.randn(2, 5, 8), torch.randn(2, 5, 10)
o, w = mha(q, k, v, key_padding_mask=torch.tensor([[False] * 5, [False] * 3 + [True] * 2]), average_attn_weights=False)
print(o.shape, w.shape, w.sum(-1).flatten()[:3], w[1, :, :, 3:5].sum())


def einsum_attention(q, k, v, heads):
    b, n, d = q.shape
    q, k, v = (t.view(b, -1, heads, d // heads) for t in (q, k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / (d // heads) ** 0.5
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).reshape(b, n, d)


x = torch.randn(2, 5, 12, requires_grad=True)
ref = F.scaled_dot_product_attention(*(x.view(2, 5, 3, 4).transpose(1, 2) for _ in range(3))).transpose(1, 2).flatten(2)
print(torch.allclose(einsum_attention(x, x, x, 3), ref, atol=1e-6))
bias = torch.randn(5, 5)
for kw in ({"is_causal": True}, {"attn_mask": bias}, {"attn_mask": bias > 0.5}, {"scale": 0.1}):
    out = F.scaled_dot_product_attention(x, x, x, **kw)
    print(list(kw), out.sum(), out.isnan().any())
print(F.scaled_dot_product_attention(x, x, x, dropout_p=0.0, is_causal=True).sum(), [part.shape for part in x.split(4, dim=2)])
gq = F.scaled_dot_product_attention(torch.randn(1, 4, 3, 8), torch.randn(1, 2, 3, 8), torch.randn(1, 2, 3, 8), enable_gqa=True)
print(gq.shape)


o, w = nn.MultiheadAttention(8, 2)(x[..., :8], x[..., :8], x[..., :8], attn_mask=nn.Transformer.generate_square_subsequent_mask(2))
print(o.shape, w, TransformerEncoder(TransformerEncoderLayer(8, 2, 16, dropout=0.0), 1)(x[..., :8]).shape)
layer = TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
dec = TransformerDecoder(layer, 2, norm=nn.LayerNorm(8))
print(dec(torch.ones(1, 3, 8), torch.ones(1, 2, 8)).shape, sum(p.numel() for p in dec.parameters()))
print(layer)
del net, modules, opt  # the gradient of a bias of keys is rounding alone
