"""A complete program with a real backward: plain PyTorch, a tiny network, one gradient."""

import torch
from torch import nn

torch.manual_seed(0)
first, second = (
    nn.Conv2d(i, o, 3, padding=1, dtype=torch.float64).requires_grad_(False)
    for i, o in ((3, 8), (8, 16))
)
image, content, style = torch.rand(3, 1, 3, 16, 16, dtype=torch.float64)


def gram(features):
    flat = features.flatten(2)[0]
    return flat @ flat.T / features.numel()


class ContentTap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, target):  # -> features, loss
        ctx.save_for_backward(features, target)  # save inputs; tensors computed here have no graph
        return features.view_as(features), (features - target).square().mean()

    @staticmethod
    def backward(ctx, grad_features, grad_loss):  # -> one gradient for each input of forward
        features, target = ctx.saved_tensors
        return grad_features + grad_loss * 2 * (features - target) / features.numel(), None


class StyleTap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, target):
        ctx.save_for_backward(features, target)
        return features.view_as(features), (gram(features) - target).square().mean()

    @staticmethod
    def backward(ctx, grad_features, grad_loss):
        features, target = ctx.saved_tensors
        difference = gram(features) - target
        grad_gram = grad_loss * 2 * difference / difference.numel()
        product = (grad_gram + grad_gram.T) @ features.flatten(2)[0] / features.numel()
        return grad_features + product.view_as(features), None


wanted = gram(first(style).relu())
kept = second(first(content).relu()).relu()

image.requires_grad_()
features, style_loss = StyleTap.apply(first(image).relu(), wanted)
features, content_loss = ContentTap.apply(second(features).relu(), kept)
total = 1_000_000 * style_loss + 100 * content_loss
total.backward()  # autograd calls the backward of both taps
print(f"gradient norm {image.grad.norm():.12f}")
