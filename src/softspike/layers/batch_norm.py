"""Batch normalisation whose statistics may be taken over several processes."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

__all__ = ["BatchNorm"]


class BatchNorm(nn.BatchNorm2d):
    """y = γ·(x − m)/√(v + ε) + β with mean m and variance v per channel; `torch.nn.BatchNorm2d`, and two things more.

    While training, m and v are those of the batch and the running statistics follow them; otherwise, and in `settled`,
    they are the running statistics. Under data parallelism (`mean_over_ranks` is set) the batch is the whole one, of
    which this process holds a slice: m and E[x²] are averaged over processes, with gradient, so that N processes
    compute what one would on the joined batch. The state is that of BatchNorm2d in every case, so a checkpoint does
    not remember how many processes wrote it.
    """

    mean_over_ranks: Callable[[Tensor], Tensor] | None = None  # differentiable; set by softspike.train.Team
    n_ranks: int = 1

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.mean_over_ranks is None:
            return super().forward(x)
        wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
        moments = torch.stack([wide.mean((0, 2, 3)), wide.square().mean((0, 2, 3))])
        mean, square = self.mean_over_ranks(moments)
        variance = (square - mean.square()).clamp_min(0)
        self._follow(mean.detach(), variance.detach(), x.numel() // x.shape[1])
        scale = self.weight * torch.rsqrt(variance + self.eps)
        shift = self.bias - mean * scale
        return (wide * scale[:, None, None] + shift[:, None, None]).to(x.dtype)

    def settled(self, x: Tensor) -> Tensor:
        """y by the running statistics, whatever the mode: each input for itself, and nothing is updated."""
        return nn.functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)

    @torch.no_grad()
    def settled_relu_(self, x: Tensor) -> Tensor:
        """relu(settled(x)) in one kernel, in place where x is channels-last already; on a GPU, without gradient."""
        from softspike.kernels.scoring import affine_relu_

        assert self.running_mean is not None
        assert self.running_var is not None
        scale = self.weight * torch.rsqrt(self.running_var + self.eps)
        x = x.contiguous(memory_format=torch.channels_last)
        return affine_relu_(x, scale, self.bias - self.running_mean * scale)

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor, n_here: int) -> None:
        """As BatchNorm2d does it: the unbiased variance, at the given momentum."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        n = n_here * self.n_ranks
        self.num_batches_tracked.add_(1)
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance * (n / max(n - 1, 1)), self.momentum)
