"""Answers to the exercises: a right one for each, and typical wrong ones with their hints.

An answer is what stands in the exercise's file under the same name.
"""

import torch
from torch import nn
from torch.autograd import Function, gradcheck
from torch.autograd.function import once_differentiable
from torch.nn.functional import mse_loss

RIGHT, WRONG = {}, []


def right(exercise, name):
    """Note down the right answer to an exercise."""

    def keep(found):
        RIGHT[exercise] = name, found
        return found

    return keep


def wrong(exercise, name, words):
    """Note down a wrong answer, and words of its hint."""

    def keep(found):
        WRONG.append((exercise, name, found, words))
        return found

    return keep


@right("01_retain_grad", "gradient_of_c")
def _(a, b, d):
    c = a + b
    c.retain_grad()
    (c * d).backward()
    return c.grad


@wrong("01_retain_grad", "gradient_of_c", "retain_graph keeps what nodes have saved")
def _(a, b, d):
    c = a + b
    (c * d).backward(retain_graph=True)
    return c.grad


@wrong("01_retain_grad", "gradient_of_c", "fills the .grad of no leaf")
def _(a, b, d):
    c = a + b
    return torch.autograd.grad(c * d, c)[0]


@wrong("01_retain_grad", "gradient_of_c", "the path from c to a has been cut")
def _(a, b, d):
    c = (a + b).detach().requires_grad_()
    (c * d).backward()
    return c.grad


def losses(weight):
    square = weight * weight
    return square.sum(), (3 * square).sum()


@right("02_two_losses", "gradients")
def _(weight):
    first, second = losses(weight)
    (of_first,) = torch.autograd.grad(first, weight, retain_graph=True)
    return of_first, *torch.autograd.grad(second, weight)


@wrong("02_two_losses", "gradients", "the first has to keep the graph")
def _(weight):
    return [torch.autograd.grad(loss, weight)[0] for loss in losses(weight)]


@wrong("02_two_losses", "gradients", "returns a tuple")
def _(weight):
    return [torch.autograd.grad(loss, weight, retain_graph=True) for loss in losses(weight)]


@wrong("02_two_losses", "gradients", "16 is 4 + 12")
def _(weight):
    found = []
    for loss in losses(weight):
        loss.backward(retain_graph=True)
        found.append(weight.grad.clone())
    return found


@wrong("02_two_losses", "gradients", "the second gradient, 12, was added to the first")
def _(weight):
    found = []
    for loss in losses(weight):
        loss.backward(retain_graph=True)
        found.append(weight.grad)
    return found


@wrong("02_two_losses", "gradients", "zero_ has emptied the first gradient")
def _(weight):
    first, second = losses(weight)
    first.backward(retain_graph=True)
    found = weight.grad
    weight.grad.zero_()
    second.backward()
    return found, weight.grad


@wrong("02_two_losses", "gradients", "nothing is left of 16 - 16")
def _(weight):
    first, second = losses(weight)
    first.backward(retain_graph=True)
    found = weight.grad
    second.backward()
    return found, weight.grad - found


@wrong("02_two_losses", "gradients", "has to be [[4], [12]], and is [[12.0], [4.0]]")
def _(weight):
    first, second = losses(weight)
    (of_second,) = torch.autograd.grad(second, weight, retain_graph=True)
    return of_second, *torch.autograd.grad(first, weight)


@wrong("02_two_losses", "gradients", "Return two gradients, each a tensor")
def _(weight):
    return 4.0, 12.0


class Through(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


right("03_called", "rounded")(Through.apply)
wrong("03_called", "rounded", "Autograd calls no method of a module")(torch.round)
wrong("03_called", "rounded", "cut the path")(lambda x: x.detach().round())
wrong("03_called", "rounded", "behind the cut")(lambda x: x.round().detach().requires_grad_())


wrong("03_called", "rounded", "has to be [0, 2], and is [0.4, 1.7]")(lambda x: x)
wrong("03_called", "rounded", "The result has no graph: no_grad")(torch.no_grad()(torch.round))


@wrong("03_called", "rounded", "x itself was changed")
def _(x):
    x.data.round_()
    return x


@wrong("03_called", "rounded", "x itself was changed")
def _(x):
    y = Through.apply(x)
    x.data.round_()
    return y


@wrong("03_called", "rounded", "The gradient is 1 whatever comes in")
def _(x):
    class Ones(Through):
        @staticmethod
        def backward(ctx, grad_output):
            return torch.ones_like(grad_output)

    return Ones.apply(x)


@wrong("03_called", "rounded", "has to be [2, -3], and is [2.0, 3.0]")
def _(x):
    class Absolute(Through):
        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.abs()

    return Absolute.apply(x)


@wrong("03_called", "rounded", "a backward has returned None")
def _(x):
    class Nothing(Through):
        @staticmethod
        def backward(ctx, grad_output):
            return None

    return Nothing.apply(x)


class Clamp(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(low, high)


@right("04_clamp", "Clamp")
class _(Clamp):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ((x >= ctx.low) & (x <= ctx.high)), None, None


@wrong("04_clamp", "Clamp", "Return a gradient for each")
class _(Clamp):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ((x >= ctx.low) & (x <= ctx.high))


@wrong("04_clamp", "Clamp", "The gradient that comes in was limited")
class _(Clamp):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clamp(ctx.low, ctx.high), None, None


@wrong("04_clamp", "Clamp", "here one bound is forgotten")
class _(Clamp):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x <= ctx.high), None, None


@wrong("04_clamp", "Clamp", "has to be [0, 3, 0], and is [0.0, 1.0, 0.0]")
class _(Clamp):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return ((x >= ctx.low) & (x <= ctx.high)).to(x), None, None


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight + bias


@right("05_linear", "Linear")
class _(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.T, x.T @ grad_output, grad_output.sum(0)


@wrong("05_linear", "Linear", "Which factor has to be transposed")
class _(Linear):  # that of the page
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.T @ x, grad_output.sum(0)


@wrong("05_linear", "Linear", "shape (4, 2) for input 2 of (2,)")
class _(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.T, x.T @ grad_output, grad_output


@wrong("05_linear", "Linear", "0.25 times the derivative of forward: a mean")
class _(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.T, x.T @ grad_output, grad_output.mean(0)


@wrong("05_linear", "Linear", "Each row adds the same bias")
class _(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.T, x.T @ grad_output, grad_output.sum(1)


@wrong("05_linear", "Linear", "return a gradient for each input of forward")
class _(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.T, x.T @ grad_output


@right("06_gradcheck", "is_right")
def _(function, x):
    return gradcheck(function.apply, x.detach().double().requires_grad_(), raise_exception=False)


@wrong("06_gradcheck", "is_right", "There is a type with sixteen digits")
def _(function, x):
    return gradcheck(function.apply, x, raise_exception=False)


@wrong("06_gradcheck", "is_right", "raise_exception=False; return False")
def _(function, x):
    return gradcheck(function.apply, x.detach().double().requires_grad_())


@wrong("06_gradcheck", "is_right", "the tolerance is so large that it passes")
def _(function, x):
    return gradcheck(function.apply, x, atol=1, rtol=0.1, raise_exception=False)


class Largest(Function):
    @staticmethod
    def forward(ctx, x):
        value, index = x.max(1)
        ctx.mark_non_differentiable(index)
        ctx.save_for_backward(x, value, index)
        return value, index


@right("07_global_max_pool", "Largest")
class _(Largest):
    @staticmethod
    def backward(ctx, grad_value, grad_index):
        x, _, index = ctx.saved_tensors
        return torch.zeros_like(x).scatter(1, index[:, None], grad_value[:, None])


@wrong("07_global_max_pool", "Largest", "so backward receives a gradient for each")
class _(Largest):
    @staticmethod
    def backward(ctx, grad_value):
        x, _, index = ctx.saved_tensors
        return torch.zeros_like(x).scatter(1, index[:, None], grad_value[:, None])


@wrong("07_global_max_pool", "Largest", "both got the whole gradient")
class _(Largest):
    @staticmethod
    def backward(ctx, grad_value, grad_index):
        x, value, _ = ctx.saved_tensors
        return (x == value[:, None]) * grad_value[:, None]


@wrong("07_global_max_pool", "Largest", "has to be [[0, 3, 0], [3, 0, 0]], and is [[0.0, 1.0, 0.0]")
class _(Largest):
    @staticmethod
    def backward(ctx, grad_value, grad_index):
        x, _, index = ctx.saved_tensors
        return torch.zeros_like(x).scatter(1, index[:, None], 1)


class Tap(Function):
    @staticmethod
    def forward(ctx, features, target):
        ctx.save_for_backward(features, target)
        return features.view_as(features), ((features - target) ** 4).mean()

    @staticmethod
    def of_loss(ctx):
        features, target = ctx.saved_tensors
        return 4 * (features - target) ** 3 / features.numel()


@right("08_tap", "Tap")
class _(Tap):
    @staticmethod
    def backward(ctx, grad_features, grad_loss):
        return grad_features + grad_loss * Tap.of_loss(ctx), None


@wrong("08_tap", "Tap", "the loss's gradient alone")
class _(Tap):
    @staticmethod
    def backward(ctx, grad_features, grad_loss):
        return grad_loss * Tap.of_loss(ctx), None


@wrong("08_tap", "Tap", "None for the target")
class _(Tap):
    @staticmethod
    def backward(ctx, grad_features, grad_loss):
        return grad_features + grad_loss * Tap.of_loss(ctx)


@wrong("08_tap", "Tap", "grad_loss is missing")
class _(Tap):
    @staticmethod
    def backward(ctx, grad_features, grad_loss):
        return grad_features + Tap.of_loss(ctx), None


@wrong("08_tap", "Tap", "divides by the number of features")
class _(Tap):
    @staticmethod
    def backward(ctx, grad_features, grad_loss):
        return grad_features + grad_loss * Tap.of_loss(ctx) * grad_features.numel(), None


class HookLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target

    def forward(self, features):
        leaf = features.detach().requires_grad_()
        self.loss = mse_loss(leaf, self.target)
        self.hook(features, *torch.autograd.grad(self.loss, leaf))
        return features


@right("09_hook", "HookLoss")
class _(HookLoss):
    def hook(self, features, grad_loss):
        features.register_hook(lambda grad_output: grad_output + grad_loss)


@wrong("09_hook", "HookLoss", "the gradient of the first loss alone")
class _(HookLoss):
    def hook(self, features, grad_loss):
        features.register_hook(lambda grad_output: grad_loss)


@wrong("09_hook", "HookLoss", "has changed its argument in place")
class _(HookLoss):
    def hook(self, features, grad_loss):
        features.register_hook(lambda grad_output: grad_output.add_(grad_loss))


@wrong("09_hook", "HookLoss", "no hook has changed it")
class _(HookLoss):
    def hook(self, features, grad_loss):
        def hook(grad_output):
            grad_output = grad_output + grad_loss

        features.register_hook(hook)


@wrong("09_hook", "HookLoss", "has to be [5, 10, 20, 40], and is [10.0, 20.0, 40.0, 80.0]")
class _(HookLoss):
    def hook(self, features, grad_loss):
        features.register_hook(lambda grad_output: grad_output + features)


@wrong("09_hook", "HookLoss", "one that multiplies 0 gets 0")
class _(HookLoss):
    def hook(self, features, grad_loss):
        features.register_hook(lambda grad_output: grad_output * grad_loss)


class TimesExp(Function):
    @staticmethod
    def forward(ctx, x):
        exp = x.exp()
        ctx.save_for_backward(x, exp)
        return x * exp

    @staticmethod
    def backward(ctx, grad_output):
        x, exp = ctx.saved_tensors
        return (1 + x) * exp * grad_output


@right("10_second_derivative", "TimesExp")
class _(TimesExp):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.exp()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (1 + x) * x.exp() * grad_output


@wrong("10_second_derivative", "TimesExp", "a quotient there is 0 / 0")
class _(TimesExp):
    @staticmethod
    def forward(ctx, x):
        y = x * x.exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return (1 + x) * (y / x) * grad_output


@wrong("10_second_derivative", "TimesExp", "RuntimeError: Refused")
class _(TimesExp):
    @staticmethod
    def backward(ctx, grad_output):
        if torch.is_grad_enabled():
            raise RuntimeError("Refused")
        return TimesExp.backward(ctx, grad_output)


@wrong("10_second_derivative", "TimesExp", "the second derivative is refused")
class _(TimesExp):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, exp = ctx.saved_tensors
        return (1 + x) * exp * grad_output


@wrong("10_second_derivative", "TimesExp", "it may take what forward saves for a constant")
class _(TimesExp):
    @staticmethod
    def forward(ctx, x):
        ctx.exp = x.exp()
        ctx.save_for_backward(x)
        return x * ctx.exp

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (1 + x) * ctx.exp * grad_output


@wrong(
    "10_second_derivative", "TimesExp", "since the first has no graph: once_differentiable, no_grad"
)
class _(TimesExp):
    @staticmethod
    def backward(ctx, grad_output):
        with torch.no_grad():
            return TimesExp.backward(ctx, grad_output)


class Square(Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


@right("11_transforms", "Square")
class _(Square):
    generate_vmap_rule = True


@wrong("11_transforms", "Square", "a forward without ctx, and a setup_context")
class _(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    backward = Square.backward


wrong("11_transforms", "Square", "a vmap, or generate_vmap_rule = True")(Square)


class GramLoss(Function):
    @staticmethod
    def forward(ctx, features, target):
        ctx.save_for_backward(features, target)
        return (features @ features.T / features.numel() - target).square().mean()

    @staticmethod
    def of_gram(ctx):
        features, target = ctx.saved_tensors
        difference = features @ features.T / features.numel() - target
        return features / features.numel(), 2 * difference / difference.numel()


@right("12_style_loss", "GramLoss")
class _(GramLoss):
    @staticmethod
    def backward(ctx, grad_output):
        features, grad_gram = GramLoss.of_gram(ctx)
        return grad_output * (grad_gram + grad_gram.T) @ features, None


@wrong("12_style_loss", "GramLoss", "right if G - target is symmetric")
class _(GramLoss):
    @staticmethod
    def backward(ctx, grad_output):
        features, grad_gram = GramLoss.of_gram(ctx)
        return grad_output * 2 * grad_gram @ features, None


@wrong("12_style_loss", "GramLoss", "divides by C^2")
class _(GramLoss):
    @staticmethod
    def backward(ctx, grad_output):
        features, grad_gram = GramLoss.of_gram(ctx)
        return grad_output * grad_gram.numel() * (grad_gram + grad_gram.T) @ features, None


@wrong("12_style_loss", "GramLoss", "no grad_output")
class _(GramLoss):
    @staticmethod
    def backward(ctx, grad_output):
        features, grad_gram = GramLoss.of_gram(ctx)
        return (grad_gram + grad_gram.T) @ features, None
