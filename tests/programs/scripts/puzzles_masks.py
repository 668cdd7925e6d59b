# Tensor puzzles: everything with indexing, broadcasting, masks and mixed dtypes; hidden Markov models; sampling.
import torch
import torch.nn.functional as F
from torch import arange, where

torch.manual_seed(0)


def ones(i):
    return where(arange(i) > -1, 1, 0)


def outer(a, b):
    return a[:, None] * b[None]


def diag(a):
    return a[arange(a.shape[0]), arange(a.shape[0])]


def eye(j):
    return where(arange(j)[:, None] == arange(j), 1, 0)


def cumsum(a):
    return where(arange(len(a))[:, None] >= arange(len(a)), a, 0).sum(1)


def pad_to(a, i, j):
    return where(arange(j) < i, a[where(arange(j) < i, arange(j), 0)], 0)


def sequence_mask(values, length):
    return where(length[:, None] > arange(values.shape[1]), values, 0)


def heaviside(a, b):
    return where(a == 0, b, where(a < 0, 0, 1))


def bucketize(v, boundaries):
    return (v[:, None] >= boundaries[None]).int().sum(1)


a = torch.tensor([3, 1, 4, 1, 5])
print(ones(4), outer(a, a), diag(outer(a, a)), eye(3), cumsum(a), pad_to(a, 3, 6))
print(sequence_mask(torch.arange(12).view(3, 4), torch.tensor([1, 4, 2])), heaviside(torch.tensor([-1, 0, 2]), torch.tensor([7, 7, 7])))
print(bucketize(torch.tensor([0, 3, 9]), torch.tensor([2, 4, 6])), torch.bucketize(torch.tensor([0, 3, 9]), torch.tensor([2, 4, 6]), right=True))
x = torch.arange(24).view(2, 3, 4)
print(x[..., ::2], x[:, [0, 2]][..., -1], x[1, :, None, 1:3].shape, x[x % 5 == 0], x[torch.tensor([[0], [1]]), torch.tensor([0, 2])].shape)
print(x[[True, False]].shape, x[None, ..., None].shape, x[:, :, torch.tensor([True, False, True, False])].shape, x[1, torch.tensor(2)], x[()].shape)
y = x.clone()
y[y > 10] = -1
y[:, 1] = torch.tensor([9, 8, 7, 6])
y[0, [0, 2], 1:3] += 100
y[1].fill_diagonal_(5)
print(y, y.roll((1, -1), (0, 2))[0], y.rot90(1, (1, 2)).shape, y.flip(-1)[0, 0], y.movedim(0, -1).shape)
u = torch.tensor([1, 2, 3], dtype=torch.uint8)
i = torch.tensor([1, 2, 3])
f = torch.tensor([0.5, 1.5, 2.5])
h, b, d = f.half(), f.bfloat16(), f.double()
for p in (u + i, u - 5, u * 1.5, i / 2, i // 2, i**2, i + f, f + d, h + f, h + b, u + True, i > f, h * 2, f + torch.tensor(1.0, dtype=torch.float64), torch.tensor(2) * h, i % 2, -i // 2, i.float() // 0.3, u << 1, i & 1, ~u, i.bool() ^ True):
    print(p.dtype, p.tolist() if p.dtype != torch.bfloat16 else p.float().tolist())
print(torch.result_type(u, 1.0), torch.promote_types(torch.int8, torch.uint8), torch.can_cast(torch.float, torch.int), torch.finfo(torch.half).max, torch.iinfo(torch.int16).min)
for bad in (lambda: i + torch.ones(2), lambda: i.mean(), lambda: f[5], lambda: f.view(2, 2), lambda: i.requires_grad_(), lambda: f @ torch.ones(2), lambda: torch.cat([f, torch.ones(1, 1)]), lambda: i.__setitem__(0, "a"), lambda: torch.stack([f, f[:2]]), lambda: f.reshape(-1, 2), lambda: torch.ones(2, 3).squeeze(5), lambda: i.add_(0.5), lambda: bool(f), lambda: int(f), lambda: f.item(), lambda: torch.tensor([[1], [1, 2]]), lambda: F.one_hot(torch.tensor([-1])), lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 5])), lambda: torch.nn.Linear(2, 3)(f), lambda: f.numpy().foo, lambda: f.expand(2, 2), lambda: torch.zeros(2).index_select(0, f)):
    try:
        print("no error", bad())
    except Exception as e:
        print(type(e).__name__, str(e).splitlines()[0][:26])
mask = torch.ones(5, 5, dtype=torch.bool).tril()
scores = torch.randn(5, 5).masked_fill(~mask, -torch.inf)
print(scores.softmax(-1).sum(-1), scores.isinf().sum(), torch.masked_select(scores, mask).shape, mask.long().argmin(1), torch.triu_indices(3, 3, 1))
src = torch.zeros(5).masked_scatter_(torch.tensor([0, 1, 0, 1, 1]).bool(), torch.arange(1.0, 6))
print(src, torch.take_along_dim(x, x.argsort(-1, descending=True), -1)[0, 0], torch.take(x, torch.tensor([0, 23, -1])))
print(*torch.unique(a, return_inverse=True, return_counts=True), *torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 1]), return_counts=True))
print(torch.histc(f, 4, 0, 4), *torch.histogram(f, bins=2), torch.isin(a, torch.tensor([1, 5])), torch.searchsorted(torch.tensor([1, 3, 5]), a))
print(a.sort(stable=True), a.kthvalue(2), a.mode(), a.median(), torch.quantile(f, torch.tensor([0.1, 0.5])), a.topk(2), a.aminmax(), a.unfold(0, 3, 1), f.nanmean(), torch.nan_to_num(torch.tensor([float("nan"), float("inf")])))
print(torch.einsum("i,j,k->ijk", f, f, f).shape, torch.tensordot(x.float(), torch.ones(4, 3, 2), dims=([1, 2], [1, 0])), torch.cartesian_prod(a[:2], a[:2]), torch.combinations(a[:3]), torch.block_diag(eye(2), ones(2)))
print(torch.repeat_interleave(a, torch.tensor([1, 0, 2, 0, 1])), a.repeat(2, 1).shape, a.tile(2), torch.diff(a), torch.trapezoid(f), torch.cumulative_trapezoid(f), torch.vander(a[:3]), a.expand(2, 5).stride(), torch.kron(eye(2), a[:2][None]))
print(torch.split(x, [1, 3], dim=2)[1].shape, torch.chunk(a, 3), torch.tensor_split(a, (1, 3)), torch.hstack([a, a]).shape, torch.dstack([a, a]).shape, torch.column_stack([a, a]).shape, x.unflatten(2, (2, -1)).shape, torch.atleast_2d(a).shape)
print(torch.tensor(3.7).int(), f.to(i), f.type(torch.IntTensor), f.type(), i.type(torch.float64).type(), f.long(), torch.as_tensor([1, 2.0]), torch.asarray(3), f.new_full((2,), 7), torch.full_like(i, 2.9), torch.empty(0).sum(), torch.empty(0, 3).mean(0))


def hmm_forward(log_pi, log_A, log_B, obs):
    alpha = log_pi + log_B[:, obs[0]]
    for o in obs[1:]:
        alpha = torch.logsumexp(alpha[:, None] + log_A, 0) + log_B[:, o]
    return torch.logsumexp(alpha, 0)


def viterbi(log_pi, log_A, log_B, obs):
    delta, back = log_pi + log_B[:, obs[0]], []
    for o in obs[1:]:
        best, arg = (delta[:, None] + log_A).max(0)
        back.append(arg)
        delta = best + log_B[:, o]
    path = [delta.argmax()]
    for arg in back[::-1]:
        path.append(arg[path[-1]])
    return torch.stack(path[::-1])


params = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((3,), (3, 3), (3, 4))]
obs = torch.randint(4, (12,))
opt = torch.optim.ASGD(params, lr=0.1)
for step in range(10):
    opt.zero_grad()
    loss = -hmm_forward(*[p.log_softmax(-1) for p in params], obs)
    loss.backward()
    opt.step()
print(f"{loss.item():.5f}", viterbi(*[p.detach().log_softmax(-1) for p in params], obs))


def nucleus(logits, p=0.8, k=0, temperature=0.7):
    logits = logits / temperature
    if k > 0:
        logits[logits < logits.topk(k)[0][..., -1, None]] = -float("Inf")
    s, idx = torch.sort(logits, descending=True)
    remove = s.softmax(-1).cumsum(-1) > p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = 0
    return logits.masked_fill(remove.scatter(-1, idx, remove), -float("inf"))


lg = torch.randn(2, 9)
print(nucleus(lg.clone()).isfinite().sum(-1), nucleus(lg.clone(), 1.1, 3).isfinite().sum(-1), torch.multinomial(nucleus(lg.clone()).softmax(-1), 3, replacement=True))
