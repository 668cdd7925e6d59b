import random
import string
import unicodedata

import torch
import torch.nn as nn
import torch.nn.functional as F

all_letters = string.ascii_letters + " .,;'"
n_letters = len(all_letters)


def unicode_to_ascii(s):
    return "".join(
        c
        for c in unicodedata.normalize("NFD", s)
        if unicodedata.category(c) != "Mn" and c in all_letters
    )


print(unicode_to_ascii("Ślusàrski"))
category_lines = {
    "Italian": ["Rossi", "Ferrari", "Esposito", "Bianchi"],
    "German": ["Schmidt", "Schneider", "Fischer", "Weber"],
    "Russian": ["Ivanov", "Smirnov", "Petrov", "Sidorov"],
}
all_categories = list(category_lines)


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, n_letters)
    for li, letter in enumerate(line):
        tensor[li][0][all_letters.find(letter)] = 1
    return tensor


print(line_to_tensor("Jones").size(), line_to_tensor("b")[0, 0, :4])


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        combined = torch.cat((input, hidden), 1)
        hidden = torch.tanh(self.i2h(combined))
        return self.softmax(self.h2o(hidden)), hidden

    def init_hidden(self):
        return torch.zeros(1, self.hidden_size)


rnn = RNN(n_letters, 32, len(all_categories))
criterion = nn.NLLLoss()
random.seed(0)
current_loss = 0
for step in range(1, 61):
    category = random.choice(all_categories)
    line = random.choice(category_lines[category])
    category_tensor = torch.tensor([all_categories.index(category)], dtype=torch.long)
    hidden = rnn.init_hidden()
    rnn.zero_grad()
    for letter in line_to_tensor(line):
        output, hidden = rnn(letter, hidden)
    loss = criterion(output, category_tensor)
    loss.backward()
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-0.05)
    current_loss += loss.item()
    if step % 20 == 0:
        top_n, top_i = output.topk(1)
        print(step, f"{current_loss / 20:.4f}", all_categories[top_i[0].item()], category)
        current_loss = 0


class CharRNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.rnn = nn.RNN(input_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, line_tensor):
        _, hidden = self.rnn(line_tensor)
        return F.log_softmax(self.h2o(hidden[0]), dim=1)


model = CharRNN(n_letters, 32, len(all_categories))
print(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.15)
for epoch in range(5):
    total = 0.0
    for index, lines in enumerate(category_lines.values()):
        batch_loss = sum(
            criterion(model(line_to_tensor(line)), torch.tensor([index])) for line in lines
        )
        optimizer.zero_grad()
        batch_loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 3)
        optimizer.step()
        total += batch_loss.item() / len(lines)
    print(f"{epoch} ({epoch / 5:.0%}): \t average batch loss = {total / 3:.5f}")
