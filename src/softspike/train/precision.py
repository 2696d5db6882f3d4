"""In which numbers the networks of a training step run: an object that the loop calls at its four precise moments."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from softspike.generator import Generator, LinearGenerator

__all__ = ["BFloat16", "Float16", "FullPrecision", "Precision", "automatic_precision"]


class Precision:
    """forward under `lowered`, then `backward`, `unscale`, `step`. This one is plain float32 throughout.

    Parameters, posteriors, thresholds, divergences and the loss are float32 in every case; only what autocast lowers,
    the matrix products and convolutions of encoder and generator, changes.
    """

    def lowered(self, device: torch.device) -> AbstractContextManager[object]:
        """The context in which the loss is computed."""
        return nullcontext()

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def unscale(self, optimizer: Optimizer, steered: Iterable[nn.Parameter] = ()) -> None:
        """Called once gradients are complete (averaged over processes), before they are used by the optimiser, or by
        what steers the parameters that it does not move."""

    def step(self, optimizer: Optimizer) -> None:
        optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must hold of it."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None: ...


class FullPrecision(Precision):
    """float32."""


class BFloat16(Precision):
    """Networks in bfloat16, whose range is that of float32: nothing needs scaling."""

    def lowered(self, device: torch.device) -> AbstractContextManager[object]:
        return torch.autocast(device.type, dtype=torch.bfloat16)


class Float16(Precision):
    """Networks in float16. The loss is multiplied by a factor that keeps small gradients from vanishing; where a
    gradient overflows, the step is left out and the factor halved; after 2000 good steps it doubles."""

    def __init__(self, device: torch.device | str = "cuda", first_scale: float = 2.0**16):
        self.scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=first_scale)

    def lowered(self, device: torch.device) -> AbstractContextManager[object]:
        return torch.autocast(device.type, dtype=torch.float16)

    def backward(self, loss: Tensor) -> None:
        self.scaler.scale(loss).backward()

    def unscale(self, optimizer: Optimizer, steered: Iterable[nn.Parameter] = ()) -> None:
        self.scaler.unscale_(optimizer)
        for parameter in steered:
            if parameter.grad is not None:
                parameter.grad.div_(self.scaler.get_scale())

    def step(self, optimizer: Optimizer) -> None:
        self.scaler.step(optimizer)
        self.scaler.update()

    def state(self) -> dict[str, Tensor]:
        kept = self.scaler.state_dict()
        return {name: torch.tensor(float(kept[name])) for name in ("scale", "_growth_tracker")}

    def restore(self, state: dict[str, Tensor]) -> None:
        if state:
            own = self.scaler.state_dict()
            tracker = int(state["_growth_tracker"])
            self.scaler.load_state_dict({**own, "scale": float(state["scale"]), "_growth_tracker": tracker})


def automatic_precision(generator: Generator, device: torch.device) -> Precision:
    """For deep generators on a GPU bfloat16 where it has it, float16 where not; float32 in all other cases."""
    if device.type != "cuda" or isinstance(generator, LinearGenerator):
        return FullPrecision()
    if torch.cuda.is_bf16_supported(including_emulation=False):
        return BFloat16()
    return Float16(device)
