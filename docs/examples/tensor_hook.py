"""The hook way, complete: plain PyTorch, a tiny network without loss layers, one gradient."""

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


def measure(target):
    """Return a forward hook that adds the gradient of a style loss to that of a layer's output."""

    def forward_hook(layer, inputs, output):
        leaf = output.detach().requires_grad_()
        layer.loss = 1_000_000 * nn.functional.mse_loss(gram(leaf), target)
        (grad_loss,) = torch.autograd.grad(layer.loss, leaf)  # ends at the leaf
        output.register_hook(lambda grad_output: grad_output + grad_loss)

    return forward_hook


layers, features = [], style
for conv in convs:
    features = conv(features).relu()
    layers += [conv, nn.ReLU()]
    layers[-1].register_forward_hook(measure(gram(features)))
network = nn.Sequential(*layers)

image.requires_grad_()
output = network(image)
output.backward(torch.zeros_like(output))  # zeros go in; each hook adds its part on the way
print(f"gradient norm {image.grad.norm():.12f}")
