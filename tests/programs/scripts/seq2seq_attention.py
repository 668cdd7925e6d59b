import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

SOS_token, EOS_token, MAX_LENGTH = 0, 1, 6
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, 1, dtype=torch.long, device=device).fill_(SOS_token)
        decoder_hidden, decoder_outputs, attentions = encoder_hidden, [], []
        for i in range(MAX_LENGTH):
            embedded = self.dropout(self.embedding(decoder_input))
            context, w = self.attention(decoder_hidden.permute(1, 0, 2), encoder_outputs)
            output, decoder_hidden = self.gru(torch.cat((embedded, context), dim=2), decoder_hidden)
            decoder_outputs.append(self.out(output))
            attentions.append(w)
            if target_tensor is not None:
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                _, topi = decoder_outputs[-1].topk(1)
                decoder_input = topi.squeeze(-1).detach()
        decoder_outputs = F.log_softmax(torch.cat(decoder_outputs, dim=1), dim=-1)
        return decoder_outputs, decoder_hidden, torch.cat(attentions, dim=1)


random.seed(0)
n, vocab = 48, 12
input_ids = torch.zeros((n, MAX_LENGTH), dtype=torch.long)
target_ids = torch.zeros((n, MAX_LENGTH), dtype=torch.long)
for row in range(n):
    words = [random.randrange(2, vocab) for _ in range(random.randint(2, MAX_LENGTH - 1))]
    input_ids[row, : len(words) + 1] = torch.tensor([*words, EOS_token])
    target_ids[row, : len(words) + 1] = torch.tensor([*reversed(words), EOS_token])
train_data = TensorDataset(input_ids.to(device), target_ids.to(device))
dataloader = DataLoader(train_data, sampler=RandomSampler(train_data), batch_size=16)
encoder, decoder = EncoderRNN(vocab, 24).to(device), AttnDecoderRNN(24, vocab).to(device)
encoder_optimizer = optim.SGD(encoder.parameters(), lr=0.5)
decoder_optimizer = optim.SGD(decoder.parameters(), lr=0.5)
criterion = nn.NLLLoss()
for epoch in range(4):
    total_loss = 0
    for input_tensor, target_tensor in dataloader:
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        encoder_outputs, encoder_hidden = encoder(input_tensor)
        outputs, _, _ = decoder(encoder_outputs, encoder_hidden, target_tensor)
        loss = criterion(outputs.view(-1, outputs.size(-1)), target_tensor.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        total_loss += loss.item()
    print(f"{epoch} {total_loss / len(dataloader):.4f}")
encoder.eval()
decoder.eval()
with torch.no_grad():
    out, _, attn = decoder(*encoder(input_ids[:2]))
    print(out.topk(1)[1].squeeze(), attn.shape, attn.sum(-1))
