"""Writes docs/model-accuracy.md: the time model against measurements on a real GPU.

    python scripts/model_accuracy.py              from the profiles kept in docs/measured/
    python scripts/model_accuracy.py --profile    profiles every workload again on the virtual GPU (minutes)

The model's constants are those of checker/vgpu/calibration.py. Three questions are asked of it: how far is it off on
all rows; how far on rows measured only after the constants were written down; and how far would it be off on kernels
it has never seen, if its constants were fitted, from round textbook values, to the other kernels alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from checker.vgpu import specs  # noqa: E402  (found through the line above)
from checker.vgpu.calibration import H200, Calibration  # noqa: E402
from checker.vgpu.clock import estimate  # noqa: E402
from checker.vgpu.profile import ArgumentProfile, Profile, SiteProfile  # noqa: E402

MEASURED = HERE.parent / "docs" / "measured"
TARGET = HERE.parent / "docs" / "model-accuracy.md"
SPEC = specs.CHIPS["h200"]

# Round values from data sheets and microbenchmarks of the architecture, none from the rows below: where a fit starts.
TEXTBOOK = Calibration(
    launch=3.0, start=0.5, dram_latency=0.6, l2_latency=0.25, dispatch=0.1, barrier=0.1, l2_bytes_per_clock=64.0,
    clocks_per_line=1.0, clocks_per_partial_sector=1.0, tensor_share=0.8, tf32_share=0.8, small_tile_share=0.5,
    alu_share=0.9, dot_step=0.2, dot_step_instructions=50.0, ramp=1.0, cold=0.5, l2_usable=0.5, l1_usable=0.5,
    sharpness=3.0, spill_factor=4.0,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Row:
    """One measured workload beside its profile."""

    id: str
    group: str
    kind: str
    us: float
    profile: Profile

    def ratio(self, figures: Calibration) -> float:
        """Modelled over measured."""
        return estimate(self.profile, SPEC, figures=figures).us / self.us


def off(ratio: float) -> float:
    """How many times off, whichever way."""
    return max(ratio, 1 / ratio)


def rows() -> list[Row]:
    """Every row that is both measured and profiled."""
    measured = json.loads((MEASURED / "h200.json").read_text())["workloads"]
    profiles = json.loads((MEASURED / "profiles.json").read_text())
    return [
        Row(name, name.split(" | ")[0], row["kind"], row["us"], _profile(profiles[name]))
        for name, row in measured.items()
        if name in profiles
    ]


def _profile(data: dict[str, Any]) -> Profile:
    data = dict(data)
    data["sites"] = [SiteProfile(**{**site, "where": None}) for site in data["sites"]]
    data["arguments"] = {name: ArgumentProfile(**argument) for name, argument in data["arguments"].items()}
    return Profile(**data)


def held_out(group: str) -> bool:
    """A third of the kernels-with-their-shape, by hash of the name: chosen before anything was fitted."""
    return int(hashlib.sha256(group.encode()).hexdigest(), 16) % 3 == 0


def fit(training: list[Row]) -> Calibration:
    """Coordinate descent on the mean of |log ratio| from the textbook values, a factor at a time."""
    figures = TEXTBOOK
    best = _loss(training, figures)
    for step in (2.0, 1.4, 1.15):
        for _ in range(3):
            before = best
            for field in dataclasses.fields(Calibration):
                for factor in (step, 1 / step):
                    value = getattr(figures, field.name) * factor
                    if field.name.endswith(("_share", "usable")) and value > 1:
                        continue
                    trial = dataclasses.replace(figures, **{field.name: value})
                    loss = _loss(training, trial)
                    if loss < best:
                        figures, best = trial, loss
            if best > before - 1e-4:
                break
    return figures


def _loss(training: list[Row], figures: Calibration) -> float:
    return statistics.fmean(abs(math.log(row.ratio(figures))) for row in training)


def summary(chosen: Iterable[Row], figures: Calibration) -> str:
    """`rows | median | within 1.25x | within 2x | worst`."""
    errors = [off(row.ratio(figures)) for row in chosen]
    near = sum(error <= 1.25 for error in errors) / len(errors)
    twice = sum(error <= 2 for error in errors) / len(errors)
    return f"{len(errors)} | {statistics.median(errors):.2f}x | {near:.0%} | {twice:.1%} | {max(errors):.2f}x"


def ranks(chosen: list[Row], figures: Calibration) -> tuple[float, float, int]:
    """(mean Spearman correlation, share of pairs ordered right, sweeps) within sweeps of at least four rows.

    Of pairs only those count whose measured times differ by more than 5 %: nearer ones are noise.
    """
    sweeps: dict[str, list[Row]] = defaultdict(list)
    for row in chosen:
        sweeps[row.group].append(row)
    correlations: list[float] = []
    right = total = 0
    for sweep in sweeps.values():
        if len(sweep) < 4:
            continue
        model = [row.ratio(figures) * row.us for row in sweep]
        real = [row.us for row in sweep]
        if max(real) > 1.1 * min(real):
            correlations.append(_spearman(real, model))
        for i in range(len(sweep)):
            for j in range(i):
                if max(real[i], real[j]) > 1.05 * min(real[i], real[j]):
                    total += 1
                    right += (real[i] < real[j]) == (model[i] < model[j])
    return statistics.fmean(correlations), right / total, len(correlations)


def _spearman(left: list[float], right: list[float]) -> float:
    def ranked(values: list[float]) -> list[float]:
        # Times within 2 % of their neighbour share a rank: a real GPU does not repeat itself better than that.
        order = sorted(range(len(values)), key=values.__getitem__)
        result = [0.0] * len(values)
        start = 0
        for end in range(1, len(values) + 1):
            if end == len(values) or values[order[end]] > 1.02 * values[order[end - 1]]:
                for position in order[start:end]:
                    result[position] = (start + end - 1) / 2
                start = end
        return result

    a, b = ranked(left), ranked(right)
    if len(set(a)) < 2 or len(set(b)) < 2:
        return 1.0 if len(set(a)) == len(set(b)) else 0.0
    return statistics.correlation(a, b)


def best_choices(chosen: list[Row]) -> list[str]:
    """Per sweep of copy, softmax and matmul: what a tuner that trusts the model loses against the best row."""
    sweeps: dict[str, list[Row]] = defaultdict(list)
    for row in chosen:
        if row.group.startswith(("copy 2", "softmax", "matmul")):
            sweeps[row.group].append(row)
    lines = []
    for group, sweep in sorted(sweeps.items()):
        if len(sweep) < 3:
            continue
        picked = min(sweep, key=lambda row: row.ratio(H200) * row.us)
        best = min(sweep, key=lambda row: row.us)
        lines.append(
            f"| {group} | {_config(picked)} | {_config(best)} | {picked.us:.1f} | {best.us:.1f} | "
            f"{picked.us / best.us - 1:.0%} |"
        )
    return lines


def _config(row: Row) -> str:
    return row.id.split(" | ")[1]


def document() -> str:
    """The whole page."""
    everything = rows()
    seen = [row for row in everything if row.kind != "fresh"]
    new = [row for row in everything if row.kind == "fresh"]
    held = [row for row in seen if held_out(row.group)]
    fitted = fit([row for row in seen if not held_out(row.group)])
    kinds = sorted({row.kind for row in seen})
    heading = "| rows | median | within 1.25x | within 2x | worst |"
    rule = "|---|---|---|---|---|"
    out = [
        "# How accurate the modelled times are",
        "",
        (
            "Generated by `scripts/model_accuracy.py`; do not edit. Measured on one NVIDIA H200 "
            "(docs/measured/h200.json, made by `scripts/measure_gpu.py`), modelled by checker/vgpu/clock.py. "
            "An error of 1.10x means 10 % too high or too low."
        ),
        "",
        "## In short",
        "",
        f"| which rows {heading}",
        f"|---{rule}",
        f"| known rows, from which the constants were read | {summary(seen, H200)} |",
        *([f"| fresh rows, measured after that | {summary(new, H200)} |"] if new else []),
        f"| held-out kernels and shapes, constants fitted to the others | {summary(held, fitted)} |",
        "",
        "Within sweeps (one kernel and shape, one parameter varied) of four rows and more that vary by over 10 %:",
        "",
        "| which rows | mean rank correlation | pairs over 5 % apart ordered right | sweeps |",
        "|---|---|---|---|",
    ]
    for name, chosen in (("known rows", seen), ("fresh rows", new)):
        if chosen:
            correlation, pairs, count = ranks(chosen, H200)
            out.append(f"| {name} | {correlation:.2f} | {pairs:.0%} | {count} |")
    correlation, pairs, count = ranks(held, fitted)
    out.append(f"| held-out rows, fitted constants | {correlation:.2f} | {pairs:.0%} | {count} |")
    out += ["", "## By kind", "", f"| kind {heading}", f"|---{rule}"]
    out += [f"| {kind} | {summary([r for r in seen if r.kind == kind], H200)} |" for kind in kinds]
    out += [
        "",
        "## With each kind left out",
        "",
        (
            "Constants fitted, from the textbook values, to every other kind; judged on the kind left out. A kind that "
            "alone determines a constant (scattered stores, tiny GEMM tiles) is bound to suffer."
        ),
        "",
        f"| kind left out {heading}",
        f"|---{rule}",
    ]
    for kind in kinds:
        without = fit([row for row in seen if row.kind != kind])
        out.append(f"| {kind} | {summary([r for r in seen if r.kind == kind], without)} |")
    out += [
        "",
        "## What a tuner that trusts the model loses",
        "",
        "| sweep | chosen | best | chosen, us | best, us | lost |",
        "|---|---|---|---|---|---|",
        *best_choices(everything),
        "",
        "## Every row",
        "",
        "| row | measured, us | modelled, us | ratio |",
        "|---|---|---|---|",
    ]
    for row in everything:
        ratio = row.ratio(H200)
        out.append(f"| {row.id.replace(' | ', ', ')} | {row.us:.1f} | {ratio * row.us:.1f} | {ratio:.2f} |")
    return "\n".join(out) + "\n"


def profile_all() -> None:
    """Profiles every workload on the virtual GPU and keeps the counts as JSON."""
    import torch
    from workloads import fresh, workloads

    from checker.vgpu.driver import VirtualGpu

    gpu = VirtualGpu("h200").activate()
    target = MEASURED / "profiles.json"
    kept: dict[str, Any] = json.loads(target.read_text()) if target.exists() and "--resume" in sys.argv else {}
    # The model never looks at values: pages of zeros cost nothing until they are touched.
    torch.randn = lambda *shape, device=None, dtype=torch.float32: torch.zeros(*shape, dtype=dtype)  # type: ignore[assignment]
    for row in [*workloads(), *fresh()]:
        if row.id in kept:
            continue
        with gpu.record(timing=True) as session:
            try:
                row.make("cpu")()
            except Exception as error:  # one row must not cost the others
                print(f"{row.id}: {type(error).__name__}: {str(error)[:120]}", flush=True)
                continue
        kept[row.id] = _rounded(dataclasses.asdict(session.launches[-1].profile))
        print(f"{len(kept):4d} {row.id}", flush=True)
        target.write_text(json.dumps(kept, indent=None, separators=(",", ":")) + "\n")


def _rounded(value: Any) -> Any:
    convert: Callable[[Any], Any] = _rounded
    if isinstance(value, dict):
        return {key: convert(item) for key, item in value.items() if key != "where"}
    if isinstance(value, list):
        return [convert(item) for item in value]
    return round(value, 3) if isinstance(value, float) else value


if __name__ == "__main__":
    if "--profile" in sys.argv:
        profile_all()
    TARGET.write_text(document())
    print(f"wrote {TARGET.name}")
