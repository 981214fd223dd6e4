"""Describes in words how much one turn may take, by policy, slice and clock: "at most 30 tuples", "at most 20 ms"."""

from __future__ import annotations

from dsms.clock import Clock, RealClock, VirtualClock, WallClock
from dsms.config.run import Settings
from dsms.engine.policy import Policy, limits_turns


def describe_turn(policy: Policy, settings: Settings, clock: type[Clock] | Clock) -> str:
    """Return the most that a turn of this policy takes on a clock, as in 'at most 30 tuples'."""
    is_real = issubclass(clock if isinstance(clock, type) else type(clock), RealClock)
    tuples, time = (getattr(policy, name, None) for name in ("tuples", "time"))
    has_own_limit = limits_turns(policy)
    limits = []
    if has_own_limit and tuples is not None:
        limits.append(f"{tuples:g} tuple{'s' * (tuples != 1)}")
    elif has_own_limit and time is None:
        limits.append("a part of the queued tuples")
    times = [time] if has_own_limit and time is not None else []
    if settings.slice is not None:
        times.append(settings.slice)
    elif not has_own_limit and clock.slice is not None:
        times.append(clock.slice)
    if times:
        limits.append(f"{min(times) * 1000:g} ms" if is_real else f"{min(times):g} time units")
    if limits:
        return f"at most {' and '.join(limits)}"
    return "one operator's work on one tuple" if policy.traits.stepwise else "one tuple"


def describe_turns(policy: Policy, settings: Settings) -> str:
    """Return the most that a turn takes on each clock, for plans that have not been started."""
    virtual, real = (describe_turn(policy, settings, clock) for clock in (VirtualClock, WallClock))
    if settings.slice is None and virtual != real:
        return f"{virtual} in virtual time, {real} on the other clocks; `slice` in [run] sets one limit for all"
    return f"{virtual}, on every clock"
