"""A complete program with hooks: plain PyTorch, a tiny network, no loss layers, one gradient."""

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


def style_loss(features):
    return 1_000_000 * mse_loss(gram(features), wanted)


def content_loss(features):
    return 100 * mse_loss(features, kept)


def measured(loss_of):
    """Return a forward hook that adds the gradient of a loss to that of a layer's output."""

    def forward_hook(layer, inputs, output):
        leaf = output.detach().requires_grad_()
        layer.loss = loss_of(leaf)
        (grad_loss,) = torch.autograd.grad(layer.loss, leaf)  # stops at the leaf
        output.register_hook(lambda grad_output: grad_output + grad_loss)

    return forward_hook


wanted = gram(first(style).relu())
kept = second(first(content).relu()).relu()
network = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
network[1].register_forward_hook(measured(style_loss))
network[3].register_forward_hook(measured(content_loss))

image.requires_grad_()
output = network(image)
output.backward(torch.zeros_like(output))  # starts with zeros; each hook adds its gradient
print(f"gradient norm {image.grad.norm():.12f}")
