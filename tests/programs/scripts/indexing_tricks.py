import torch

x = torch.arange(24).reshape(2, 3, 4)
print(x[0], x[..., 0], x[:, 1:, ::2], x[-1, -1, -1], x[:, None].shape, x[1, [0, 2]])
print(x[x % 2 == 0][:5], x[torch.tensor([0, 1]), torch.tensor([1, 2])], x[:, [0, 2]][:, :, [3, 1]].shape)
y = torch.zeros(3, 4)
y[1] = 1
y[:, 2] = torch.tensor([5.0, 6.0, 7.0])
y[y == 0] = -1
y[[0, 2], [0, 3]] += 10
print(y)
print(torch.where(y > 0, y, torch.zeros_like(y)), torch.nonzero(y > 4), (y > 4).nonzero(as_tuple=True))
print(y.gather(1, torch.tensor([[0, 1], [1, 2], [3, 0]])), torch.take_along_dim(y, y.argsort(1), 1))
print(torch.zeros(3, 5).scatter_(1, torch.tensor([[0], [2], [4]]), 1.0))
print(torch.nn.functional.one_hot(torch.tensor([0, 2, 1]), 4), torch.eye(4)[[0, 2]])
print(y.index_select(0, torch.tensor([2, 0])), y.masked_select(y > 5), y.masked_fill(y < 0, 0.0))
print(torch.stack([y, y]).shape, torch.cat([y, y], -1).shape, torch.hstack([y, y]).shape, torch.vstack([y, y]).shape)
a, b = torch.chunk(y, 2, dim=1)
print(a, torch.split(y, [1, 3], dim=1)[1].shape, y.unbind(0)[0], torch.tensor_split(y, 3, 1)[0].shape)
print(y.permute(1, 0).shape, y.T.is_contiguous(), y.T.contiguous().view(-1)[:3], y.transpose(0, 1).reshape(2, 6).shape)
print(x.movedim(0, -1).shape, x.flatten(1).shape, x.unflatten(2, (2, 2)).shape, x.squeeze().shape, x.swapaxes(0, 1).shape)
print(torch.tensor([1, 2, 3]).repeat(2, 2), torch.tensor([1, 2, 3]).expand(2, 3), torch.tensor([1, 2]).repeat_interleave(2))
print(y.max(), y.max(dim=1), y.min(0).values, y.argmax(), y.argmax(dim=1, keepdim=True))
v, i = y.sort(dim=1, descending=True)
print(v, torch.topk(y, 2).values, y.flatten().kthvalue(3).values, y.median(), y.mode(1).values)
print(y.cumsum(1), y.cumprod(0)[-1], y.prod(1), y.mean((0, 1)), y.std(0), y.var(unbiased=False), y.norm(dim=1))
print(y.any(), (y > -2).all(), y.clamp(0, 6), y.abs().sum(), torch.unique(y), torch.diff(y[0]), y.flip(0)[0], y.roll(1, 0)[0])
print(torch.tril(torch.ones(3, 3)), torch.triu(torch.ones(3, 3), 1), torch.diag(torch.tensor([1, 2])), torch.outer(a[:, 0], a[0]))
print(torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[0], torch.cartesian_prod(torch.arange(2), torch.arange(2)))
print(torch.bucketize(torch.tensor([0.5, 2.5]), torch.tensor([0.0, 1.0, 2.0])), torch.histc(y, 4), torch.combinations(torch.arange(3)))
print(torch.isnan(torch.tensor([1.0, float("nan")])), torch.isclose(torch.tensor(1.0), torch.tensor(1.0 + 1e-9)), y.unfold(1, 2, 1).shape)
print(torch.roll(x, 1, dims=2)[0, 0], torch.flatten(x, start_dim=1).shape, [part.shape for part in x.split(2, dim=1)], y.repeat_interleave(2, dim=0).shape)
print(y.max(1, keepdim=True)[1], y.argmax(axis=1), y[:, :3].diag(), x.diagonal(dim1=0, dim2=1).sum(-1), y.clamp(max=2), torch.pdist(y))
for index in (5, (0, 9)):
    try:
        y[index]
    except IndexError as error:
        print(error)
try:
    torch.cat([torch.zeros(2, 3), torch.zeros(3, 4)])
except RuntimeError as error:
    print(error)
try:
    torch.zeros(2, 3) @ torch.zeros(2, 3)
except RuntimeError as error:
    print(error)
try:
    torch.zeros(2, 3) + torch.zeros(2, 4)
except RuntimeError as error:
    print(str(error)[:88])
try:
    torch.zeros(6).view(4, 2)
except RuntimeError as error:
    print(error)
try:
    y.T.view(-1)
except RuntimeError as error:
    print(error)
