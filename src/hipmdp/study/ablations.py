"""Ablations: one setting at a time, as variants of a study."""

from dataclasses import replace

from hipmdp._errors import known_name
from hipmdp.study.setup import Setup, Variant

ABLATIONS: dict[str, tuple[Variant, ...]] = {
    "latent_size": tuple(Variant(f"latent_size={n}", dynamics=(("latent_size", n),)) for n in (1, 2, 5, 12)),
    "alpha": tuple(Variant(f"alpha={a}", dynamics=(("alpha", a),)) for a in (0.01, 0.5, 1.0)),
    "weight_draws": tuple(Variant(f"weight_draws={k}", dynamics=(("weight_draws", k),)) for k in (1, 4, 16)),
    "training": tuple(Variant(f"training={n}", training=n) for n in (2, 4, 8, 16, 32)),
    "imagination": (
        Variant("imagination=mean", adaptation=(("mean_weights", True), ("weight_draws", 50))),
        Variant("imagination=one_draw", adaptation=(("weight_draws", 1),)),
        Variant("imagination=point_latent", adaptation=(("latent_temperature", 0.0),)),
    ),
    "exploration": (Variant("exploration=random", adaptation=(("first_policy", False),)),),
}
"""By name: the number of latents, α, weight draws per gradient step, training instances, and what imagination
draws (the mean over 50 weight draws, a single draw, the fitted w_b alone; plain: 16 draws, each with its own w_b); a
random first episode instead of one that Q(s, w) controls."""


def ablated(setup: Setup, names: list[str]) -> list[Setup]:
    """The plain setup first, then each variant that makes sense in this family."""
    family = setup.make()
    members = len(family.instances(family.training_pool))
    setups = [setup]
    for name in names:
        for variant in ABLATIONS[known_name("ablation", name, ABLATIONS)]:
            if (variant.training or 0) <= members:
                setups.append(replace(setup, variant=variant))
    return setups
