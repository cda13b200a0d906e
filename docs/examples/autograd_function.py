"""A real backward, complete: plain PyTorch, a tiny network, one gradient."""

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


class StyleTap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, target):  # -> features, loss
        ctx.save_for_backward(features, target)  # inputs: what is computed here has no graph
        return features.view_as(features), (gram(features) - target).square().mean()

    @staticmethod
    def backward(ctx, grad_features, grad_loss):  # -> one gradient for each input of forward
        features, target = ctx.saved_tensors
        difference = gram(features) - target
        grad_gram = grad_loss * 2 * difference / difference.numel()
        product = (grad_gram + grad_gram.T) @ features.flatten(2)[0] / features.numel()
        return grad_features + product.view_as(features), None


image.requires_grad_()
features, painted, total = style, image, 0
for conv in convs:
    features, painted = conv(features).relu(), conv(painted).relu()
    painted, loss = StyleTap.apply(painted, gram(features))
    total = total + 1_000_000 * loss
total.backward()  # enters StyleTap.backward on its way
print(f"gradient norm {image.grad.norm():.12f}")
