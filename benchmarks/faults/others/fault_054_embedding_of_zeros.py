# cause: loss-at-chance
# symptom: the loss stays at ln 2: all tokens look the same to the model (valid accuracy 0.608; without the fault: valid accuracy 1.000)
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(n, length=12, vocab=6):
    """Sequences of tokens 1 ... 5 (0 is padding); the label is whether there are more 1s than 2s."""
    tokens = torch.randint(1, vocab, (n, length))
    lengths = torch.randint(6, length + 1, (n,))
    tokens[torch.arange(length) >= lengths[:, None]] = 0
    label = (tokens == 1).sum(1) > (tokens == 2).sum(1)
    return tokens, label.long()


class SequenceClassifier(nn.Module):
    def __init__(self, vocab=6, d_model=32, heads=4, layers=2, dropout=0.1):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_model, padding_idx=0)
        layer = nn.TransformerEncoderLayer(d_model, heads, dim_feedforward=64, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.classify = nn.Linear(d_model, 2)

    def forward(self, tokens):
        pad = tokens == 0
        h = self.encoder(self.embed(tokens.clamp(max=1)), src_key_padding_mask=pad)  # <- fault
        keep = (~pad).unsqueeze(-1).float()
        pooled = (h * keep).sum(1) / keep.sum(1)
        return self.classify(pooled)


def evaluate(model, loader):
    model.eval()
    hits = n = 0
    with torch.inference_mode():
        for tokens, label in loader:
            hits += (model(tokens).argmax(-1) == label).sum().item()
            n += len(label)
    return hits / n


def main():
    torch.manual_seed(21)
    train_loader = DataLoader(TensorDataset(*make_data(2000)), batch_size=50, shuffle=True)
    valid_loader = DataLoader(TensorDataset(*make_data(500)), batch_size=250)
    model = SequenceClassifier()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        model.train()
        for tokens, label in train_loader:
            loss = criterion(model(tokens), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}, valid {evaluate(model, valid_loader):.3f}")
    print(f"final valid accuracy {evaluate(model, valid_loader):.3f}")


if __name__ == "__main__":
    main()
