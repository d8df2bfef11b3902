"""Prioritized replay inside jit, for TD errors and for squared model errors alike.

Item i is drawn with probability P(i) = p_i^a / Σ_j p_j^a and carries the importance weight (N P(i))^−b, divided by
the largest weight of the mini-batch. New items take the largest priority seen so far.

The tree and the stratified sampling are flashbax's. Setting priorities is ours: flashbax adds differences up the
tree, so that after millions of float32 updates the root is no longer the sum of the leaves, and draws land on
empty ones; here every parent is recomputed from its two children, which cannot drift.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flashbax.buffers import sum_tree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

SMALLEST_PRIORITY = 1e-6
"""Added to every error, so that nothing is forgotten for good."""


class Replay(NamedTuple):
    """All experience so far: `items` is a pytree of arrays whose leading axis is the capacity."""

    items: Any
    tree: Any
    """p_i^a in the leaves of a sum tree; the last leaf is a bin for rows that are not kept."""
    size: Int[Array, ""]
    largest: Float[Array, ""]
    """Largest p_i^a seen so far."""

    @property
    def capacity(self) -> int:
        """Number of items that fit."""
        return int(jax.tree.leaves(self.items)[0].shape[0])


class Sample(NamedTuple):
    """A mini-batch, where it came from, and its importance weights."""

    items: Any
    indices: Int[Array, " batch"]
    weights: Float[Array, " batch"]


def init(example: Any, capacity: int) -> Replay:
    """An empty replay for items shaped like `example`."""
    items = jax.tree.map(lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype), example)
    return Replay(items, sum_tree.init(capacity + 1), jnp.zeros((), jnp.int32), jnp.ones((), jnp.float32))


def add(replay: Replay, rows: Any, keep: Bool[Array, " rows"]) -> Replay:
    """Append the rows where `keep` holds. When full, what does not fit is dropped: size it for all experience."""
    capacity = replay.capacity
    position = replay.size + jnp.cumsum(keep, dtype=jnp.int32) - 1
    target = jnp.where(keep & (position < capacity), position, capacity)
    items = jax.tree.map(lambda all_, new: all_.at[target].set(new, mode="drop"), replay.items, rows)
    leaves = jnp.where(target < capacity, replay.largest, 0)
    size = jnp.minimum(replay.size + jnp.sum(keep, dtype=jnp.int32), capacity)
    return Replay(items, _set_leaves(replay.tree, target, leaves), size, replay.largest)


def cleared(replay: Replay) -> Replay:
    """The same replay with nothing in it."""
    tree = replay.tree.replace(nodes=jnp.zeros_like(replay.tree.nodes))
    return Replay(replay.items, tree, jnp.zeros((), jnp.int32), jnp.ones((), jnp.float32))


def sample(replay: Replay, key: PRNGKeyArray, batch_size: int, importance_exponent: float) -> Sample:
    """Draw a mini-batch, stratified over the cumulated priorities."""
    indices = sum_tree.stratified_sample(replay.tree, batch_size, key)
    # Rounding at the very end of the range may reach beyond the last item.
    indices = jnp.clip(indices, 0, jnp.maximum(replay.size - 1, 0)).astype(jnp.int32)
    depth = replay.tree.tree_depth
    probability = replay.tree.nodes[2**depth - 1 + indices] / replay.tree.nodes[0]
    weights = (replay.size.astype(jnp.float32) * probability) ** -importance_exponent
    # Adds nothing, but makes whoever writes priorities at these indices wait for the reads above: XLA, which cannot see
    # that order otherwise, copies the whole tree at every draw (8 MB for half a million rows).
    indices = indices + (0 * weights).astype(jnp.int32)
    items = jax.tree.map(lambda leaf: leaf[indices], replay.items)
    return Sample(items, indices, weights / jnp.max(weights))


def set_priorities(
    replay: Replay, indices: Int[Array, " batch"], errors: Float[Array, " batch"], priority_exponent: float
) -> Replay:
    """Set p_i to |error| for the items of a mini-batch."""
    leaves = (jnp.abs(errors) + SMALLEST_PRIORITY) ** priority_exponent
    largest = jnp.maximum(replay.largest, jnp.max(leaves))
    return replay._replace(tree=_set_leaves(replay.tree, indices, leaves), largest=largest)


def _set_leaves(tree: Any, indices: Int[Array, " n"], values: Float[Array, " n"]) -> Any:
    """Set leaves and recompute, level by level, the sums above them."""
    node = 2**tree.tree_depth - 1 + indices
    nodes = tree.nodes.at[node].set(values)

    def level(_: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        node, nodes = carry
        node = (node - 1) // 2
        return node, nodes.at[node].set(nodes[2 * node + 1] + nodes[2 * node + 2])

    return tree.replace(nodes=jax.lax.fori_loop(0, tree.tree_depth, level, (node, nodes))[1])
