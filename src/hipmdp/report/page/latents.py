"""The map of latents: where the w_b of each instance lies, in the plane in which they differ most."""

from typing import Any

import numpy as np

from hipmdp.study.cells.record import CellRecord


def latent_maps(records: list[CellRecord]) -> list[dict[str, Any]]:
    """One map per method, variant and seed: every seed trains its own model, whose latents have axes of their own."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for position, record in enumerate(records):
        latent = record.latents[-1] if record.latents else None
        if latent is not None and np.size(latent) and np.isfinite(latent).all():
            _, method, variant, _, seed = record.name
            key = (method, variant, seed, record.episodes, len(latent))
            found.setdefault(key, []).append(position)
    maps = []
    for (method, variant, seed, episodes, size), cells in found.items():
        places, shares = principal_plane(np.stack([np.asarray(records[cell].latents[-1]) for cell in cells]))
        maps.append(
            {
                "method": method, "variant": variant, "seed": seed, "episodes": episodes, "size": size,
                "cells": cells, "places": places, "shares": shares,
            }
        )  # fmt: skip
    return maps


def principal_plane(latents: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """(n, 2) coordinates, and the shares of the variance along them.

    Latents of two numbers are shown as they are (no shares), a single number lies on a line. More are centred and
    projected onto their first two principal components, each with the sign that makes its largest weight positive.
    """
    latents = np.asarray(latents, np.float64)
    count, size = latents.shape
    if size <= 2:
        return np.concatenate([latents, np.zeros((count, 2 - size))], axis=1), None
    centred = latents - latents.mean(axis=0)
    _, strength, directions = np.linalg.svd(centred, full_matrices=True)
    directions = directions[:2]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1, keepdims=True), axis=1)
    power = np.zeros(max(2, len(strength)))
    power[: len(strength)] = strength**2
    shares = power[:2] / max(power.sum(), np.finfo(np.float64).tiny)
    # Two latents lie on a line: what rounding leaves across it is not a place.
    return centred @ (directions * np.sign(largest)).T * (shares > 1e-12), shares
