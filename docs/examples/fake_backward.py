"""A complete program with the fake backward: plain PyTorch, a tiny network, one gradient."""

import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
first, second = (
    nn.Conv2d(i, o, 3, padding=1, dtype=torch.float64).requires_grad_(False)
    for i, o in ((3, 8), (8, 16))
)
image, content, style = torch.rand(3, 1, 3, 16, 16, dtype=torch.float64)


def gram(features):
    flat = features.flatten(2)[0]
    return flat @ flat.T / features.numel()


class ContentLoss(nn.Module):
    def __init__(self, target, weight):
        super().__init__()
        self.weight = weight
        self.register_buffer("target", target.detach() * weight)

    def forward(self, features):
        self.loss = mse_loss(features * self.weight, self.target)
        return features  # unchanged

    def backward(self, retain_graph=True):
        self.loss.backward(retain_graph=retain_graph)  # Tensor.backward, which runs autograd
        return self.loss


class StyleLoss(ContentLoss):
    def forward(self, features):
        self.loss = mse_loss(gram(features) * self.weight, self.target)
        return features


wanted = gram(first(style).relu())
kept = second(first(content).relu()).relu()
network = nn.Sequential(
    *(first, nn.ReLU(), StyleLoss(wanted, weight=1000)),  # its loss is multiplied by 1000 ** 2
    *(second, nn.ReLU(), ContentLoss(kept, weight=10)),
)

image.requires_grad_()
network(image)
for layer in network:
    if isinstance(layer, ContentLoss):
        layer.backward()  # autograd never calls it; gradients add up in image.grad
print(f"gradient norm {image.grad.norm():.12f}")
