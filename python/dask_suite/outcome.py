"""The outcome of a test, and which outcomes are worse than others."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Mapping

# Each outcome is worse than those in the lines above. A test must not have it if the baseline had one of those.
SEVERITY = {
    "passed": 0, "xpassed": 0,
    "xfailed": 1,
    "skipped": 2,
    "failed": 3, "error": 3,  # in the test; in what it needs, or outside any test
    "crashed": 4,  # its process died
    "timeout": 5,
    "missing": 6,  # asked for, and not there
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """One run of one test. `alone`: it had a session of its own, because it had failed beside other tests."""

    id: str
    outcome: str
    seconds: float
    text: str = ""  # why, if it neither passed nor was skipped
    alone: bool = False

    def __post_init__(self) -> None:
        if self.outcome not in SEVERITY:
            raise ValueError(f"outcome {self.outcome!r} of {self.id}: want one of {', '.join(SEVERITY)}")

    @property
    def bad(self) -> bool:
        """Whether the test may have failed by chance, so that it is worth a retry."""
        return SEVERITY[self.outcome] >= SEVERITY["failed"] and self.outcome != "missing"

    def to_json(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if v or k not in ("text", "alone")}

    @classmethod
    def from_json(cls, d: Mapping[str, Any]) -> Outcome:
        return cls(d["id"], d["outcome"], d["seconds"], d.get("text", ""), d.get("alone", False))


def worse(outcome: str, than: str) -> bool:
    return SEVERITY[outcome] > SEVERITY[than]
