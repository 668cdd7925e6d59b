"""What the doctor reports: findings, and the suspicions from which they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tinytorch.inspect.doctor.place import Place

__all__ = ["Finding", "Suspicion", "Trial"]


@dataclass
class Trial:
    """A counterfactual: some steps of the program, taken again with one thing changed.

    Attributes:
        patch: what is changed (see `patches`).
        judge: how it is compared with the same steps unchanged: the name of a function of `judging`.
        start: the point of time from which the program goes on: "first" (before the first forward pass of a model),
            "loader" (before the first iteration over data), or "before" (the last one kept before `step`).
        step: the number of the backward pass at which the symptom was seen, for "before".
        steps: how many backward passes to run; None for as many as the time permits.
        says: what the change is, for the sentence "with ... the same steps ...".
        remedy: what to write if it succeeds, unless it is the remedy of the suspicion.
    """

    patch: Any
    judge: str = "learns_better"
    start: str = "first"
    step: int = 0
    steps: int | None = None
    says: str = ""
    remedy: str = ""


@dataclass
class Suspicion:
    """A possible cause of what was seen, before it is proven.

    Attributes:
        cause: the fixed name of the cause.
        text: what was seen and what follows from it, a sentence with numbers.
        place: the line of the program.
        remedy: what to change, as code.
        evidence: further observations, a sentence each.
        trials: the counterfactuals that would prove it; one that succeeds is enough.
        certain: whether what was seen is a mistake whatever the counterfactuals show.
        proven: whether the observation is a proof already, and of what kind (a sentence), or "".
        rank: findings of a lower rank are reported first, among those proven, and among those not proven.
    """

    cause: str
    text: str
    place: Place | None
    remedy: str
    evidence: list[str] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    certain: bool = False
    proven: str = ""
    rank: int = 5


@dataclass
class Finding:
    """A diagnosis.

    Attributes:
        cause: the name of the cause, one of `causes()`.
        text: what was seen, with numbers.
        place: the line of the program, or None.
        remedy: what to change, as code.
        evidence: further observations.
        proof: what the counterfactual showed; "" if nothing has proven it, and it is a suspicion.
        rank: the lower, the more specific.
        certain: whether it is a mistake in any case, proven or not.
    """

    cause: str
    text: str
    place: Place | None
    remedy: str
    evidence: list[str]
    proof: str
    rank: int
    certain: bool = False

    @property
    def proven(self) -> bool:
        """Whether a counterfactual has removed the symptom."""
        return bool(self.proof)

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as an object for JSON."""
        place = self.place
        return {
            "cause": self.cause, "proven": self.proven, "text": self.text, "proof": self.proof, "remedy": self.remedy,
            "file": place.file if place else None, "line": place.number if place else None,
            "source": place.text if place else None, "evidence": self.evidence,
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [
            f"{'proven' if self.proven else 'suspicion'}: {self.cause}" + (f" at {self.place}" if self.place else "")
        ]
        if self.place and self.place.text:
            lines.append(f"    {self.place.text}")
        lines.append(f"  {self.text}")
        lines += [f"  {each}" for each in self.evidence]
        if self.proof:
            lines.append(f"  proof: {self.proof}")
        lines.append("  remedy: " + self.remedy.replace("\n", "\n          "))
        return "\n".join(lines)
