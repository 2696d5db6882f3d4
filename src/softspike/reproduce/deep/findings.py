"""The sentences that follow from the tables of the deep study."""

from itertools import pairwise
from statistics import mean

from softspike.reproduce.deep.cell import DENSE, METHODS
from softspike.reproduce.deep.paper import BY_DIMENSION
from softspike.reproduce.deep.rows import Records, methods_in
from softspike.reproduce.deep.setting import DeepSetting
from softspike.reproduce.rows import off_by, short

__all__ = ["findings"]

_ERROR, _TOLERANCE, _MOST_NAMED = "error.best", 0.05, 5


def findings(setting: DeepSetting, records: Records) -> list[str]:
    """What the errors say about the paper's, in sentences; a quick run says nothing."""
    if setting.quick:
        return []
    trends = [_trend(setting, records, method) for method in methods_in(records)]
    found = [_within(setting, records), *trends, _claim(setting, records)]
    if len(records.all) > 1:
        found += [_choosing(setting, records), _left_out(setting, records)]
    if records.diverged:
        names = sorted({f"{r['cell']['method']} d = {r['cell']['n_components']}" for r in records.diverged})
        found.append(f"Diverged: {', '.join(names)}.")
    return [sentence for sentence in found if sentence]


def _within(setting: DeepSetting, records: Records) -> str:
    """How many cells come within 5 % of the paper or better."""
    good, misses, ratios = 0, [], []
    for method, points in BY_DIMENSION[setting.name].items():
        for d, theirs in points.items():
            ours = records.value(method, d, setting.share, _ERROR)
            if ours is None:
                continue
            if ours <= theirs * (1 + _TOLERANCE):
                good += 1
            else:
                ratios.append((ours, theirs))
                misses.append(
                    f"{METHODS[method]} d = {d} ({short(ours)} against {short(theirs)}, {off_by(ours, theirs)})"
                )
    if not good and not misses:
        return ""
    said = f"The error is within 5 % of the paper's or below it in {good} of {good + len(misses)} cells over dimensions"
    if len(misses) > _MOST_NAMED:
        least, most = (pick(ratios, key=lambda pair: pair[0] / pair[1]) for pick in (min, max))
        return f"{said}; the others miss by {off_by(*least)} to {off_by(*most)}."
    return said + (f"; misses: {', '.join(misses)}." if misses else ".")


def _trend(setting: DeepSetting, records: Records, method: str) -> str:
    """Whether a method gains from dimension, from the smallest measured to the largest."""
    known = _errors(setting, records, method)
    if len(known) < 2:
        return ""
    (low, first), (high, last) = min(known.items()), max(known.items())
    verb = "falls" if last < first else "rises"
    said = f"{METHODS[method]}: the error {verb} by {abs(last / first - 1):.1%} from d = {low} to d = {high}"
    theirs = BY_DIMENSION[setting.name].get(method, {})
    if low in theirs and high in theirs:
        change = theirs[high] / theirs[low] - 1
        said += f" (the paper: {'falls' if change < 0 else 'rises'} by {abs(change):.1%})"
    best = min(known, key=lambda d: known[d])
    return said + f"; least at d = {best}."


def _claim(setting: DeepSetting, records: Records) -> str:
    """The paper's finding: sparse priors keep improving with dimension where the Gaussian degrades."""
    errors = {method: _errors(setting, records, method) for method in methods_in(records)}
    known = {method: list(by_d.values()) for method, by_d in errors.items() if len(by_d) > 1}
    if DENSE not in known or len(known) < 2:
        return ""
    verdicts: dict[str, list[str]] = {"holds for": [], "holds up to a point for": [], "does not hold for": []}
    for method in (m for m in known if m != DENSE):
        values = known[method]
        falling = all(b < a for a, b in pairwise(values))
        kind = "holds for" if falling else "holds up to a point for" if min(values) < values[0] else "does not hold for"
        least = min(errors[method], key=lambda d: errors[method][d])
        verdicts[kind].append(METHODS[method] + (f" (least at d = {least})" if kind.startswith("holds up") else ""))
    gaussian = "rises" if known[DENSE][-1] > known[DENSE][0] else "falls"
    said = "; ".join(f"{kind} {', '.join(names)}" for kind, names in verdicts.items() if names)
    return f"That sparse priors keep improving with dimension where the Gaussian degrades (it {gaussian}): {said}."


def _choosing(setting: DeepSetting, records: Records) -> str:
    """What of the error is owed to choosing among draws. The mean image's error is the code's over 1 − R²."""
    figures = [record["figures"] for record in records.all]
    plain = mean(f["error"]["code"] / (1 - f["explained_variance"]["code"]) for f in figures)
    one, best = ([f["error"][name] for f in figures] for name in ("one", "best"))
    gains = [a / b for a, b in zip(one, best, strict=True)]
    worse = sum(error > plain for error in one)
    codes = sum(f["explained_variance"]["code"] < 0 for f in figures)
    return (
        f"Much of it is choosing: a single draw's error is {min(gains):.1f} to {max(gains):.1f} times that of the best "
        f"of {setting.n_samples}, and in {worse} of {len(one)} cells above the {short(plain)} of the mean image; that "
        f"of the deterministic code, which is what `transform` gives, in {codes}."
    )


def _errors(setting: DeepSetting, records: Records, method: str) -> dict[int, float]:
    """Dimension → error, where it was measured."""
    values = {d: records.value(method, d, setting.share, _ERROR) for d in setting.dimensions}
    return {d: value for d, value in values.items() if value is not None}


def _left_out(setting: DeepSetting, records: Records) -> str:
    """What of the paper's sweeps has no cell."""
    have = {(method, d, share) for method, d, share in records.cells()}
    methods = [METHODS[m] for m in METHODS if m not in {cell[0] for cell in have}]
    dimensions = [str(d) for d in setting.dimensions if d not in {cell[1] for cell in have}]
    shares = [f"{p:.0%}" for p in setting.shares if p not in {cell[2] for cell in have if cell[0] != DENSE}]
    parts = [", ".join(methods), f"d = {', '.join(dimensions)}" if dimensions else ""]
    parts.append(f"an active share of {', '.join(shares)}" if shares else "")
    seeds = len({record["cell"]["seed"] for record in records.all})
    said = f"Not measured: {'; '.join(part for part in parts if part)}. " if any(parts) else ""
    return f"{said}{seeds} seed{'s' if seeds > 1 else ''} for each cell: small differences are not told from chance."
