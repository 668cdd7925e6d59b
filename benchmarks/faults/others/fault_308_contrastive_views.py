# cause: overflow
# symptom: the loss is nan from the first step on (exp of similarities / 0.005 is inf, inf / inf)
"""Contrastive pairing of two sensor views (sound and vibration) of the same machine state."""
import torch
from torch import nn
import torch.nn.functional as F

TEMPERATURE = 0.005  # <- fault


def paired_views(n, mix_a, mix_b):
    state = torch.randn(n, mix_a.shape[0])
    a = torch.tanh(state @ mix_a) + 0.05 * torch.randn(n, mix_a.shape[1])
    b = torch.tanh(state @ mix_b) + 0.05 * torch.randn(n, mix_b.shape[1])
    return a, b


def encoder(n_in, n_out=16):
    return nn.Sequential(nn.Linear(n_in, 64), nn.GELU(), nn.Linear(64, n_out))


def similarity(za, zb):
    return F.normalize(za, dim=-1) @ F.normalize(zb, dim=-1).T / TEMPERATURE


def info_nce(za, zb):
    sim = similarity(za, zb)
    weights = torch.exp(sim)  # <- fault
    prob = weights.diagonal() / weights.sum(dim=1)  # <- fault
    return -torch.log(prob + 1e-12).mean()


@torch.no_grad()
def retrieval(enc_a, enc_b, a, b):
    best = similarity(enc_a(a), enc_b(b)).argmax(dim=1)
    return (best == torch.arange(len(a))).float().mean().item()


def main():
    torch.manual_seed(13)
    mix_a, mix_b = torch.randn(6, 24) * 0.5, torch.randn(6, 32) * 0.5
    a, b = paired_views(2048, mix_a, mix_b)
    a_test, b_test = paired_views(200, mix_a, mix_b)
    enc_a, enc_b = encoder(24), encoder(32)
    params = list(enc_a.parameters()) + list(enc_b.parameters())
    optimizer = torch.optim.AdamW(params, lr=1e-3)
    for epoch in range(15):
        total = 0.0
        batches = torch.randperm(len(a)).split(64)
        for idx in batches:
            loss = info_nce(enc_a(a[idx]), enc_b(b[idx]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch:2d}: nce {total / len(batches):.4f}, "
              f"recall@1 {retrieval(enc_a, enc_b, a_test, b_test):.3f}")


if __name__ == "__main__":
    main()
