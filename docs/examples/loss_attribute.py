"""A complete program with the loss attribute: plain PyTorch, a tiny network, one gradient."""

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
    def __init__(self, target):
        super().__init__()
        self.register_buffer("target", target.detach())

    def forward(self, features):
        self.loss = mse_loss(features, self.target)
        return features  # unchanged


class StyleLoss(ContentLoss):
    def forward(self, features):
        self.loss = mse_loss(gram(features), self.target)
        return features


wanted = gram(first(style).relu())
kept = second(first(content).relu()).relu()
style_loss, content_loss = StyleLoss(wanted), ContentLoss(kept)
network = nn.Sequential(first, nn.ReLU(), style_loss, second, nn.ReLU(), content_loss)

image.requires_grad_()
network(image)
total = 1_000_000 * style_loss.loss
total = total + 100 * content_loss.loss
total.backward()  # one call for all losses
print(f"gradient norm {image.grad.norm():.12f}")
