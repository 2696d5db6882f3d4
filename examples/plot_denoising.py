"""Denoising a photograph: sparse codes of its own noisy patches, beside matching pursuit on the same features."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from skimage.metrics import peak_signal_noise_ratio
from sklearn.feature_extraction.image import extract_patches_2d, reconstruct_from_patches_2d

from softspike import SparseCoder
from softspike.data import photographs
from softspike.solver import omp

STEPS = 800
NOISE, SIDE = 0.1, 8

clean = photographs()[2][64:192, 160:288]  # 128 × 128 of the camera man
noisy = clean + NOISE * np.random.default_rng(0).standard_normal(clean.shape)
patches = extract_patches_2d(noisy, (SIDE, SIDE)).reshape(-1, SIDE**2)
means = patches.mean(1, keepdims=True)
X = (patches - means).astype(np.float32)

coder = SparseCoder(96, n_active=2, max_steps=STEPS, random_state=0).fit(X)
codes = coder.transform(X)


def together(parts):
    """Overlapping patches averaged into a picture."""
    return reconstruct_from_patches_2d((parts + means).reshape(-1, SIDE, SIDE), clean.shape)


# The usual rival: pursue each patch until what is left is as large as the noise.
atoms = torch.from_numpy(coder.components_.T.copy())
pursued = torch.cat([omp(x, atoms, tolerance=SIDE**2 * (1.15 * NOISE) ** 2) for x in torch.from_numpy(X).split(2048)])
pictures = {
    "clean": clean, "noisy": noisy, "OMP to the noise level": together((pursued @ atoms.T).numpy()),
    f"softspike, {codes.nnz / len(X):.1f} active": together(coder.inverse_transform(codes)),
}  # fmt: skip
figure, axes = plt.subplots(1, 4, figsize=(14, 4))
for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
    quality = peak_signal_noise_ratio(clean, picture.clip(0, 1), data_range=1) if name != "clean" else np.inf
    print(f"{name}: {quality:.2f} dB")
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
    ax.set_title(f"{name}\n{quality:.2f} dB" if np.isfinite(quality) else name)
    ax.set_axis_off()
plt.show()
