"""What a benchmark of a GPU asks first."""

import argparse

import torch

__all__ = ["gpu_name"]


def gpu_name(parser: argparse.ArgumentParser) -> str:
    """What figures are of; ends the command, in a sentence, where there is no GPU."""
    if not torch.cuda.is_available():
        parser.error("these are times of a GPU, and torch sees none here")
    return torch.cuda.get_device_name()
