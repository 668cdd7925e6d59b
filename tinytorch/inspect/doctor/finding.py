"""What the doctor suspects, how it tries to prove it, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tinytorch.inspect.doctor.place import Place

__all__ = ["Finding", "Trial"]


@dataclass
class Trial:
    """A counterfactual: some steps of the program, taken again with one thing changed.

    Attributes:
        patch: what is changed (see `patches`).
        judge: how it is compared with the same steps unchanged: the name of a function of `judging`.
        start: the point of time from which the program goes on: "first" (before the first forward pass of a model), or
            "before" (the last one kept before `step`).
        step: the number of the backward pass at which the symptom was seen, for "before".
        says: what the change is, for the sentence "with ... the same steps ...".
        remedy: what to write if it succeeds, unless it is the remedy of the finding.
    """

    patch: Any
    judge: str = "learns_better"
    start: str = "first"
    step: int = 0
    says: str = ""
    remedy: str = ""


@dataclass
class Finding:
    """A possible cause of what was seen, and whether it is proven.

    Attributes:
        cause: the name of the cause, one of `causes.causes()`.
        place: the line of the program, or None.
        text: what was seen and what follows from it, with numbers.
        remedy: what to change, as code.
        proof: what the observation or a counterfactual showed; "" if nothing has proven it, and it is a suspicion.
        rank: the lower, the more specific: such are reported first, among those proven, and among those not proven.
        certain: whether what was seen is a mistake whatever the counterfactuals show.
        trials: the counterfactuals that would prove it; one that succeeds is enough.
        losses: those of the counterfactual that has proven it.
    """

    cause: str
    place: Place | None
    text: str = ""
    remedy: str = ""
    proof: str = ""
    rank: int = 5
    certain: bool = False
    trials: list[Trial] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    @property
    def proven(self) -> bool:
        """Whether the observation is a proof, or a counterfactual has removed the symptom."""
        return bool(self.proof)

    @property
    def general(self) -> bool:
        """Whether there is no more to it than that trying it helps, or is it one of several things that might be."""
        return not self.certain or self.rank >= 3

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as an object for JSON."""
        place = self.place
        return {
            "cause": self.cause, "proven": self.proven, "text": self.text, "proof": self.proof, "remedy": self.remedy,
            "file": place.file if place else None, "line": place.number if place else None,
            "source": place.text if place else None,
        }  # fmt: skip

    def __str__(self) -> str:
        place = self.place
        lines = [f"{'proven' if self.proven else 'suspicion'}: {self.cause}{f' at {place}' if place else ''}"]
        lines += [f"    {place.text}"] if place and place.text else []
        lines.append(f"  {self.text}")
        lines += [f"  proof: {self.proof}"] if self.proof else []
        lines.append("  remedy: " + self.remedy.replace("\n", "\n          "))
        return "\n".join(lines)
