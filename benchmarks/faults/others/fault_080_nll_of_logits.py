# cause: nll-without-log-softmax
# symptom: the loss is negative and falls without end (accuracy of the other nodes 0.275; without the fault: accuracy of the other nodes 0.915)
import torch
import torch.nn as nn
import torch.nn.functional as F

# Node classification by graph convolutions, full batch, few labels (a stochastic block model).
torch.manual_seed(5)
N, C = 240, 4
label = torch.arange(N) % C
same = label[:, None] == label[None, :]
adj = (torch.rand(N, N) < torch.where(same, 0.12, 0.01)).float().triu(1)
adj = adj + adj.t()
features = torch.randn(N, 16) + 0.5 * F.one_hot(label, 16).float()

a_hat = adj + torch.eye(N)
deg = a_hat.sum(1).pow(-0.5)
a_norm = deg[:, None] * a_hat * deg[None, :]


class GraphConv(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, hidden=24, dropout=0.4):
        super().__init__()
        self.gc1 = GraphConv(16, hidden)
        self.gc2 = GraphConv(hidden, C)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return self.gc2(x, adj)  # <- fault


perm = torch.randperm(N)
idx_train, idx_val = perm[:40], perm[40:]
model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.03, weight_decay=5e-4)

for epoch in range(150):
    model.train()
    optimizer.zero_grad()
    output = model(features, a_norm)
    loss = F.nll_loss(output[idx_train], label[idx_train])  # <- fault
    loss.backward()
    optimizer.step()
    if epoch % 30 == 0:
        print(f"Epoch: {epoch:04d} loss_train: {loss.item():.4f}")

model.eval()
with torch.no_grad():
    acc = (model(features, a_norm).argmax(1) == label)[idx_val].float().mean().item()
print(f"final accuracy of the other nodes {acc:.3f}")
