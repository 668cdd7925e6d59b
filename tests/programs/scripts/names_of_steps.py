# What results say of the step that made them, as printed and by `grad_fn`, for layers that are one op or many.
import torch
import torch.nn as nn
import torch.nn.functional as F

steps = torch.ones(2, 3, 2)
packed = nn.utils.rnn.pack_padded_sequence(steps, [2, 2, 1])
for kind in (nn.RNN, nn.LSTM, nn.GRU):
    for options in ({}, {"batch_first": True}, {"bidirectional": True}, {"num_layers": 2}):
        out, last = kind(2, 2, **options)(steps)
        last = last[0] if isinstance(last, tuple) else last
        print(kind.__name__, options, out.grad_fn.name(), last.grad_fn.name())
    print(kind.__name__, kind(2, 2)(packed)[0].data.grad_fn.name())
print(nn.GRU(2, 2)(steps)[0])
print(nn.GRU(2, 2, batch_first=True)(steps)[0])
print(nn.GRUCell(2, 2)(steps[0]), nn.RNNCell(2, 2)(steps[0]))

# The gradients through them, and through a second backward pass.
gru = nn.GRU(2, 3, batch_first=True)
x = torch.rand(2, 4, 2, requires_grad=True)
out, last = gru(x)
(slope,) = torch.autograd.grad(out.pow(2).sum() + last.sum(), x, create_graph=True)
slope.pow(2).sum().backward()
print(slope, x.grad, gru.weight_hh_l0.grad)
out, lengths = nn.utils.rnn.pad_packed_sequence(nn.GRU(2, 3)(packed)[0])
out.sum().backward()
print(out, lengths)

scores, labels = torch.tensor([[1.0, 2.0], [0.5, -1.0]], requires_grad=True), torch.tensor([0, 1])
for smoothing in (0.0, 0.1):
    for reduction in ("mean", "sum", "none"):
        loss = F.cross_entropy(scores, labels, label_smoothing=smoothing, reduction=reduction)
        print(loss)
        loss.sum().backward()
places = F.cross_entropy(
    torch.rand(2, 3, 4, requires_grad=True), torch.ones(2, 4, dtype=torch.long), label_smoothing=0.2
)
print(places, scores.grad)

# A linear layer is a product of matrices, and for other inputs than matrices a view of it.
for layer in (nn.Linear(2, 3), nn.Linear(2, 3, bias=False)):
    for inputs in (torch.ones(2), torch.ones(4, 2), torch.ones(5, 4, 2), torch.ones(0, 4, 2)):
        inputs.requires_grad_()
        out = layer(inputs)
        steps_back = [out.grad_fn.name()]
        if inputs.dim() != 2:
            ((product, _),) = out.grad_fn.next_functions
            steps_back.append(product.name())
        out.sum().backward()
        print(steps_back, out.exp().grad_fn.next_functions[0][0].name(), inputs.grad, layer.weight.grad)
