import numpy as np
import torch

use_cuda = torch.cuda.is_available()
print("GPU available" if use_cuda else "CPU only", torch.cuda.device_count())
device = torch.device("cuda:0" if use_cuda else "cpu")
print(device, device.type, device.index, torch.device("cpu", 0) == torch.device("cpu:0"))
x = torch.ones(2, device=device)
print(x.to(device), x.cpu().is_cuda, x.to("cpu", torch.float64), x.get_device(), x.is_contiguous())
try:
    torch.ones(1).to("cuda")
except (AssertionError, RuntimeError) as error:
    print(type(error).__name__)
print(torch.backends.cudnn.is_available(), torch.backends.mps.is_available(), torch.accelerator.is_available())
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False
torch.set_num_threads(2)
print(torch.get_num_threads(), torch.get_default_dtype())
i = torch.tensor([1, 2, 3])
print(i.float() / 2, i / 2, i // 2, i % 2, i.double().dtype, i.long() is i, i.type(), i.type(torch.FloatTensor))
print((i + 1.5).dtype, (i + torch.tensor(1.5, dtype=torch.float64)).dtype, (i > 1).int(), i.bool())
print(torch.tensor([1.7, -1.7]).int(), torch.tensor([1.7, -1.7]).round(), torch.tensor(3.7).item(), int(torch.tensor(3.7)))
print(torch.finfo(torch.float32).eps, torch.iinfo(torch.int32).max, torch.result_type(i, 1.0))
torch.set_default_dtype(torch.float64)
print(torch.zeros(2).dtype, torch.tensor([1.5]).dtype)
torch.set_default_dtype(torch.float32)
a = np.arange(6, dtype=np.float64).reshape(2, 3)
t = torch.from_numpy(a)
t[0, 0] = 100
print(a[0, 0], t.dtype, torch.as_tensor(a).data_ptr() == t.data_ptr(), torch.tensor(a).data_ptr() == t.data_ptr())
print(np.sin(t), np.asarray(t).sum(), np.array(t).shape, t.numpy().T.shape, torch.Tensor(a).dtype)
print(np.mean(t.numpy()), torch.tensor(np.float32(2.5)), torch.tensor([np.int64(3), 4]), a @ t.numpy().T)
p = torch.ones(2, requires_grad=True)
try:
    p.numpy()
except RuntimeError as error:
    print(error)
print(p.detach().numpy(), p.detach().cpu().numpy().tolist(), (p * 2).tolist())
print(torch.from_numpy(np.array([True, False])), torch.tensor(np.array([1, 2], dtype=np.uint8)))
h = torch.tensor([1.0, 2.0]).half()
print(h, h.dtype, h.bfloat16(), (h + 1).sum(), h.element_size(), torch.float16.itemsize)
torch.set_printoptions(precision=2, sci_mode=False)
print(torch.tensor([1234.5678, 0.00012]), torch.pi)
torch.set_printoptions(profile="default")
print(torch.arange(3).tolist(), len(torch.zeros(4, 2)), [r.tolist() for r in torch.eye(2)], 3 in torch.tensor([1, 2, 3]))
print(isinstance(t, torch.DoubleTensor), torch.is_tensor(a), torch.is_floating_point(i), i.numel(), i.nelement())
print(bool(torch.tensor([0.0])), float(torch.tensor([[2.5]])), f"{torch.tensor(3.14159):.2f}", torch.tensor(2) ** 3)
print(torch.tensor([[1, 2], [3, 4]]).sum().item(), torch.Tensor([1, 2]).dtype, torch.LongTensor([1, 2]).dtype)
try:
    bool(torch.ones(2))
except RuntimeError as error:
    print(error)
g = torch.Generator(device="cpu").manual_seed(7)
print(torch.rand(2, generator=g), torch.initial_seed(), torch.randperm(5, generator=g))
state = torch.get_rng_state()
first = torch.rand(1)
torch.set_rng_state(state)
print(torch.equal(first, torch.rand(1)))
with torch.random.fork_rng():
    torch.manual_seed(1)
    torch.rand(1)
a = torch.linspace(-1, 1, 5, device=device, dtype=torch.float, requires_grad=True)
b = torch.full((), 0.5, device=device, requires_grad=True)
c = torch.autograd.Variable(torch.tensor([2.0], device=device)) + torch.zeros(1, device=device) + torch.eye(1, device=device)[0]
(torch.squeeze(torch.abs(a * b)) * c).sum().backward()
print(a.grad, b.grad, torch.empty(3, dtype=torch.long, device=device).fill_(1), torch.zeros_like(a, dtype=torch.bool))
w = torch.normal(0, 0.1, size=(2, 3), requires_grad=True)
x, y = torch.randn(3, 2, device=device), torch.rand(size=(2, 2))
print(torch.add(y, y, out=torch.empty(2, 2)), torch.mul(y, y, out=y.clone()), torch.matmul(w.detach(), x, out=y), w.mm(x), w.matmul(x))
print(torch.rand_like(i, dtype=torch.float), torch.randn_like(i, dtype=torch.double), i.new_ones(2, dtype=torch.double), torch.Size([1, 2]).numel())
print(x.to(device=device).sub_(1), x.data.normal_(0, 0.01), torch.randint(10, (2,), device=device), np.add(np.ones(2), 1, out=np.ones(2)))
print(torch.rand(1), torch.__version__.split(".")[0].isdigit(), torch.seed() >= 0)
