import torch


def make_data(n):
    centers = torch.tensor([[2.0, 0.0, 1.0], [-2.0, 1.0, 0.0], [0.0, -3.0, 2.0], [1.0, 3.0, -2.0]])
    labels = torch.randint(0, 4, (n,))
    return centers[labels] + 0.7 * torch.randn(n, 3), labels


train_X, train_y = make_data(256)
test_X, test_y = make_data(128)
W = torch.normal(0, 0.01, size=(3, 4), requires_grad=True)
b = torch.zeros(4, requires_grad=True)


def softmax(X):
    X_exp = torch.exp(X)
    partition = X_exp.sum(1, keepdim=True)
    return X_exp / partition


X = torch.normal(0, 1, (2, 5))
X_prob = softmax(X)
print(X_prob, X_prob.sum(1))


def net(X):
    return softmax(torch.matmul(X.reshape((-1, W.shape[0])), W) + b)


y = torch.tensor([0, 2])
y_hat = torch.tensor([[0.1, 0.3, 0.6], [0.3, 0.2, 0.5]])
print(y_hat[[0, 1], y])


def cross_entropy(y_hat, y):
    return -torch.log(y_hat[range(len(y_hat)), y])


print(cross_entropy(y_hat, y))


def accuracy(y_hat, y):
    if len(y_hat.shape) > 1 and y_hat.shape[1] > 1:
        y_hat = y_hat.argmax(axis=1)
    cmp = y_hat.type(y.dtype) == y
    return float(cmp.type(y.dtype).sum())


print(accuracy(y_hat, y) / len(y))
for epoch in range(5):
    perm = torch.randperm(len(train_X))
    total = 0.0
    for idx in perm.split(32):
        l = cross_entropy(net(train_X[idx]), train_y[idx])  # noqa: E741
        l.sum().backward()
        with torch.no_grad():
            for p in (W, b):
                p -= 0.1 * p.grad / len(idx)
                p.grad.zero_()
        total += float(l.sum())
    print(
        f"epoch {epoch}: loss {total / len(train_X):.4f} test acc {accuracy(net(test_X), test_y) / len(test_y)}"
    )
confusion = torch.zeros(4, 4, dtype=torch.int64)
for t, p in zip(test_y, net(test_X).argmax(1)):
    confusion[t, p] += 1
print(confusion)
print(torch.bincount(test_y, minlength=4), confusion.diag().float() / confusion.sum(1))
