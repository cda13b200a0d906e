"""Why `e.backward()` changes `a.grad`, why it adds, and what `zero_grad` is for."""

import torch

a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
d = torch.tensor(4.0, requires_grad=True)
c = a + b  # 5
e = c * d  # 20
e.backward()  # a.grad 4, b.grad 4, d.grad 5, c.grad None
print(a.grad.item(), b.grad.item(), d.grad.item())

optimizer = torch.optim.SGD([a, b, d], lr=0.1)
(a * b).backward()  # its derivatives are b = 3 and a = 2: a.grad 4 + 3 = 7, b.grad 4 + 2 = 6
print(a.grad.item(), b.grad.item(), d.grad.item())
optimizer.zero_grad()  # a.grad, b.grad and d.grad are None again
(a * b).backward()  # a.grad 3, b.grad 2
print(a.grad.item(), b.grad.item(), d.grad)
