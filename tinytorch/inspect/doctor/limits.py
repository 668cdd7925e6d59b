"""The numbers that checks compare with, and where each is from."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["LIMITS"]

#: "Corpus": the middle between the healthy programs and those with the mistake in `benchmarks/faults`.
LIMITS: Final[dict[str, Any]] = {
    # A program may do otherwise in its first steps, or now and then (corpus).
    "almost all steps": 0.85,
    # What a list has to hold before its growth is worth mentioning.
    "bytes kept": 8_000_000,
    # Drawing n of n with replacement gives 63 % different ones; weights for rare classes a third (corpus).
    "distinct samples": 0.2,
    # The same, of samples chosen by hand: a program may learn from a part of its data.
    "chosen samples": 0.05,
    # 0.1 is PyTorch's default; Keras' 0.99 is the weight of the old value, and so 0.01 here.
    "momentum of statistics": 0.5,
    # What is left of the first statistics at the end: 12 % after 20 batches with the default momentum.
    "first values": 0.3,
    # Float32 has all integers up to 2**24; a conversion of measurements merges none, or a few.
    "numbers left": 0.5,
    # Training and test data of one kind differ by some percent in mean and deviation (corpus).
    "scale of test data": 4.0,
    # Units that get no gradient for any input, and the share from which it is certain: half are usual (corpus).
    "relu-dead": (0.75, 0.98),
    # Outputs in the flat parts of tanh or a sigmoid (corpus).
    "saturation/units": (0.6, 0.95),
    # Below it, a state of a recurrent layer is gone within ten steps; PyTorch's first weights have 0.58.
    "spectral radius": 0.4,
    # As much is usual (layers are initialized for 1), and normalised data seldom exceed 10.
    "largest input": 20,
    # Standardised columns have 1; those of one unit (pixels, counts) differ less.
    "scales of columns": 100,
    # In float32 nearly all elements move.
    "steps that change nothing": 0.5,
    # A schedule that is meant ends there; one that is meant for epochs stays there.
    "share of the first rate": 0.01,
    # Half of the units is the most that is usual (Srivastava et al., 2014).
    "share left out": 0.7,
    # Eight in ten letters of a text differ from the next one; copied targets are all equal.
    "targets that are inputs": 0.99,
    # How many labels of a batch are the same if the data are sorted; shuffled, as many as in all data (corpus).
    "labels of one kind": 0.75,
    # Without a mistake none change; a layer across the batch changes all.
    "rows that change with another": 0.5,
    # Sums of float32 in another order differ by some 1e-6 of their size.
    "rounding": 1e-3,
    # What is left of a gradient that is clipped: usual limits cut the highest alone (Pascanu et al., 2012).
    "share of a clipped gradient": 0.1,
    # A model that has learned is below half the loss of a constant guess (corpus).
    "share of a constant's loss": 0.5,
    # So far below a constant guess's loss, it matters little which of two trials is lower.
    "learned": 0.1,
    # The mean or the deviation of targets; the outputs of new layers are about 1.
    "scale of targets": (0.02, 20.0),
    # PyTorch's quickstart, whose rate is small, is at 0.98 after an epoch; a model that learns nothing at 1.
    "as a constant": 0.99,
    # Weights that decay by this share of themselves in a step's direction: usual values are from 1e-5 to 0.1 (AdamW).
    "weight decay": 0.05,
    # Usual values are from 1e-8 to 1e-4; it is added to the root of squared gradients, which are often below 0.01.
    "eps": 1e-2,
    # Scores of classes differ by about 1 in the first step, and more then.
    "spread of scores": 0.2,
    # Differences in float64 agree to 1e-6; an approximation that is meant (an iteration, say) to some percent.
    "derivatives apart": 0.1,
    # The highest rate of a schedule is the one given; a cosine or warm-up reaches it.
    "share of the rate": 0.2,
}
