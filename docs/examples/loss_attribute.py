"""The loss attribute, complete: plain PyTorch, a tiny network, one gradient."""

import torch
from torch import nn

torch.manual_seed(0)
convs = [
    nn.Conv2d(i, o, 3, padding=1, dtype=torch.float64).requires_grad_(False)
    for i, o in ((3, 8), (8, 16))
]
image, style = torch.rand(2, 1, 3, 16, 16, dtype=torch.float64)


def gram(features):
    flat = features.flatten(2)[0]
    return flat @ flat.T / features.numel()


class StyleLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.register_buffer("target", target.detach())

    def forward(self, features):
        self.loss = nn.functional.mse_loss(gram(features), self.target)
        return features  # unchanged


layers, features = [], style
for conv in convs:
    features = conv(features).relu()
    layers += [conv, nn.ReLU(), StyleLoss(gram(features))]
network = nn.Sequential(*layers)

image.requires_grad_()
network(image)
total = sum(1_000_000 * layer.loss for layer in network if isinstance(layer, StyleLoss))
total.backward()  # once, for all losses
print(f"gradient norm {image.grad.norm():.12f}")
