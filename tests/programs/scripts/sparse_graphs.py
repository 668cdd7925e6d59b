# Graph networks with sparse adjacency matrices: GCN in COO and CSR, GraphSAGE with reduced products, APPNP.
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore", message=".*[Ss]parse")

torch.manual_seed(0)
n, features, classes = 60, 10, 3
labels = torch.randint(0, classes, (n,))
ends = torch.randint(0, n, (2, 400))
kept = (labels[ends[0]] == labels[ends[1]]) | (torch.rand(400) < 0.2)
edges = ends[:, kept]
edges = torch.cat([edges, edges.flip(0), torch.arange(n).repeat(2, 1)], 1)
x = torch.randn(n, features) + F.one_hot(labels, features).float()
train = torch.arange(n) < 40

adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.size(1)), (n, n)).coalesce()
adjacency = torch.sparse_coo_tensor(adjacency.indices(), torch.ones(adjacency._nnz()), (n, n)).coalesce()
degree = torch.sparse.sum(adjacency, dim=1).to_dense()
row, col = adjacency.indices()
norm = torch.sparse_coo_tensor(
    adjacency.indices(), degree[row].rsqrt() * adjacency.values() * degree[col].rsqrt(), (n, n)
).coalesce()
print(adjacency.shape, adjacency._nnz(), adjacency.is_coalesced(), f"{norm.sum().item():.4f}")


class GraphConvolution(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(fan_in, fan_out))
        self.bias = nn.Parameter(torch.zeros(fan_out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return torch.spmm(adj, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GraphConvolution(features, 16), GraphConvolution(16, classes)

    def forward(self, x, adj):
        return self.second(F.dropout(F.relu(self.first(x, adj)), 0.5, self.training), adj)


class SAGE(nn.Module):
    def __init__(self, reduce):
        super().__init__()
        self.reduce = reduce
        self.own, self.near = nn.Linear(features, classes), nn.Linear(features, classes, bias=False)

    def forward(self, x, adj):
        return self.own(x) + self.near(torch.sparse.mm(adj, x, self.reduce))


class APPNP(nn.Module):
    def __init__(self, alpha=0.1, steps=4):
        super().__init__()
        self.alpha, self.steps = alpha, steps
        self.lin = nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Linear(16, classes))

    def forward(self, x, adj):
        start = h = self.lin(x)
        for _ in range(self.steps):
            h = torch.addmm(start, adj, h, beta=self.alpha, alpha=1 - self.alpha)
        return h


def fit(name, model, adj):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    losses = []
    for _ in range(20):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, adj)[train], labels[train])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        accuracy = (model(x, adj).argmax(1) == labels)[~train].float().mean()
    print(name, " ".join(f"{each:.4f}" for each in losses[::5]), f"{accuracy:.3f}")
    return losses


torch.manual_seed(1)
gcn_coo = fit("GCN, COO", GCN(), norm)
torch.manual_seed(1)
gcn_csr = fit("GCN, CSR", GCN(), norm.to_sparse_csr())
torch.manual_seed(2)
sage = {how: fit(f"SAGE, {how}", SAGE(how), adjacency.to_sparse_csr()) for how in ("mean", "amax")}
torch.manual_seed(3)
appnp = fit("APPNP", APPNP(), norm)

pairs = torch.unique(torch.randint(0, 4, (2, 20)), dim=1)
print(torch.sparse_coo_tensor(pairs, torch.ones(pairs.size(1)), (4, 4)).to_dense())

# Formats of one matrix, and what a program asks of them.
small = norm.to_dense()[:4, :6].contiguous()
for form in (small.to_sparse_csr(), small.to_sparse_csc(), small.to_sparse_bsr((2, 3)), small.to_sparse_bsc((2, 3))):
    print(form.layout, form._nnz(), tuple(form.values().shape), torch.equal(form.to_dense(), small), form.t().layout)
print(small.to_sparse_csr())
print(torch.sparse.softmax(small.to_sparse(), 1).to_dense().sum(1))
mask = (small > 0).float().to_sparse_csr()
left, right = torch.ones(4, 2), torch.arange(12.0).view(2, 6)
print(torch.sparse.sampled_addmm(mask, left, right).values())
print(torch.sparse.spdiags(torch.ones(2, 4), torch.tensor([0, 1]), (4, 4)).to_dense())
