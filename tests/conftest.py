"""Fixed seeds for every test, and the tables of cases on the import path."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
