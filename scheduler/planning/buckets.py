"""Token buckets: so many leases a second, and a burst of them after a quiet time."""

from dataclasses import dataclass, replace
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenBucket:
    """A rate limit: so many leases a second, and a burst of them after a quiet time."""

    rate: float
    """Leases a second; 0 switches the limit off."""
    burst: int
    tokens: float
    at: datetime

    @classmethod
    def full(cls, *, rate: float, burst: int, at: datetime) -> "TokenBucket":
        """A bucket after a quiet time."""
        return cls(rate=rate, burst=burst, tokens=float(burst), at=at)

    def refilled(self, now: datetime) -> "TokenBucket":
        """The bucket as it stands now. A clock that went back adds nothing."""
        seconds = max(0.0, (now - self.at).total_seconds())
        return replace(self, tokens=min(float(self.burst), self.tokens + seconds * self.rate), at=now)

    def take(self, leases: int) -> "TokenBucket":
        """The bucket after so many leases, which it must have allowed."""
        return replace(self, tokens=self.tokens - leases) if self.rate else self

    def allows(self, leases: int) -> bool:
        """So many leases may be made now."""
        return not self.rate or self.tokens >= leases

    def ever_allows(self, leases: int) -> bool:
        """So many leases may be made at once after a quiet time."""
        return not self.rate or self.burst >= leases

    @property
    def is_full(self) -> bool:
        """Nothing is known of it that a fresh one would not say."""
        return not self.rate or self.tokens >= self.burst
