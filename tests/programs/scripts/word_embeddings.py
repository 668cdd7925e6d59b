import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(1)
word_to_ix = {"hello": 0, "world": 1}
embeds = nn.Embedding(2, 5)
lookup_tensor = torch.tensor([word_to_ix["hello"]], dtype=torch.long)
hello_embed = embeds(lookup_tensor)
print(hello_embed)
CONTEXT_SIZE = 2
EMBEDDING_DIM = 10
test_sentence = """When forty winters shall besiege thy brow,
And dig deep trenches in thy beauty's field,
Thy youth's proud livery so gazed on now,
Will be a totter'd weed of small worth held""".split()
ngrams = [
    ([test_sentence[i - j - 1] for j in range(CONTEXT_SIZE)], test_sentence[i])
    for i in range(CONTEXT_SIZE, len(test_sentence))
]
print(ngrams[:3])
vocab = sorted(set(test_sentence))
word_to_ix = {word: i for i, word in enumerate(vocab)}


class NGramLanguageModeler(nn.Module):
    def __init__(self, vocab_size, embedding_dim, context_size):
        super().__init__()
        self.embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.linear1 = nn.Linear(context_size * embedding_dim, 128)
        self.linear2 = nn.Linear(128, vocab_size)

    def forward(self, inputs):
        embeds = self.embeddings(inputs).view((1, -1))
        out = F.relu(self.linear1(embeds))
        return F.log_softmax(self.linear2(out), dim=1)


losses = []
loss_function = nn.NLLLoss()
model = NGramLanguageModeler(len(vocab), EMBEDDING_DIM, CONTEXT_SIZE)
optimizer = optim.SGD(model.parameters(), lr=0.001)
for epoch in range(4):
    total_loss = 0
    for context, target in ngrams:
        context_idxs = torch.tensor([word_to_ix[w] for w in context], dtype=torch.long)
        model.zero_grad()
        log_probs = model(context_idxs)
        loss = loss_function(log_probs, torch.tensor([word_to_ix[target]], dtype=torch.long))
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    losses.append(total_loss)
print(losses)
print(model.embeddings.weight[word_to_ix["forty"]])


class CBOW(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab_size, dim, mode="mean")
        self.out = nn.Linear(dim, vocab_size)

    def forward(self, contexts):
        return self.out(self.bag(contexts))


ids = torch.tensor([word_to_ix[w] for w in test_sentence])
windows = ids.unfold(0, 5, 1)
contexts, targets = windows[:, [0, 1, 3, 4]], windows[:, 2]
cbow = CBOW(len(vocab), 8)
opt = optim.Adam(cbow.parameters(), lr=0.02)
for epoch in range(10):
    opt.zero_grad()
    loss = F.cross_entropy(cbow(contexts), targets)
    loss.backward()
    opt.step()
print(f"{loss.item():.4f}", cbow)
similar = F.cosine_similarity(cbow.bag.weight[0], cbow.bag.weight, dim=1).topk(3)
print(similar.values, [vocab[i] for i in similar.indices])
glove = nn.Embedding.from_pretrained(torch.eye(4), freeze=True, padding_idx=0)
print(glove(torch.tensor([[1, 0], [3, 3]])), glove.weight.requires_grad, glove)
