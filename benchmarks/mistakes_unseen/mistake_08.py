# remedy: the memory has 64 features, the attention expects 48: nn.MultiheadAttention(48, 4, kdim=64, vdim=64, batch_first=True)
import torch
import torch.nn as nn


class CrossBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(dim, 4, batch_first=True)  # <- fault

    def forward(self, x, memory):
        x = x + self.self_attn(x, x, x, need_weights=False)[0]
        return x + self.cross_attn(x, memory, memory, need_weights=False)[0]  # <- fault


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.image_encoder = nn.Sequential(nn.Conv2d(3, 64, 4, stride=4), nn.Flatten(2))
        self.decoder = nn.ModuleList([CrossBlock(48), CrossBlock(48)])
        self.words = nn.Embedding(30, 48)

    def forward(self, image, caption):
        memory = self.image_encoder(image).transpose(1, 2)
        x = self.words(caption)
        for block in self.decoder:
            x = block(x, memory)
        return x


Captioner()(torch.randn(2, 3, 16, 16), torch.randint(0, 30, (2, 7)))
