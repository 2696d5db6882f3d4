"""The sentences that follow from the tables of the deep study."""

from collections.abc import Mapping
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
    found = [_within(setting, records), *trends, _claim(setting, records), _choosing(setting, records)]
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
    changes = {method: _change(_errors(setting, records, method)) for method in methods_in(records)}
    known = {method: change for method, change in changes.items() if change is not None}
    sparse = [method for method in known if method != DENSE]
    if DENSE not in known or not sparse:
        return ""
    gaining = [METHODS[method] for method in sparse if known[method] < 0]
    losing = [METHODS[method] for method in sparse if known[method] >= 0]
    said = "That sparse priors keep improving with dimension where the Gaussian degrades is "
    if known[DENSE] < 0:
        return said + "refuted here: the Gaussian improves."
    if not losing:
        return said + "confirmed for every sparse method measured."
    if not gaining:
        return said + "refuted for every sparse method measured."
    return said + f"confirmed for {', '.join(gaining)}, refuted for {', '.join(losing)}."


def _choosing(setting: DeepSetting, records: Records) -> str:
    """What of the error is owed to choosing among draws. The mean image's error is the code's over 1 − R²."""
    if not records.all:
        return ""
    figures = [record["figures"] for record in records.all]
    plain = mean(f["error"]["code"] / (1 - f["explained_variance"]["code"]) for f in figures)
    one, best = ([f["error"][name] for f in figures] for name in ("one", "best"))
    gains = [a / b for a, b in zip(one, best, strict=True)]
    worse = sum(error > plain for error in one)
    return (
        f"Much of it is choosing: a single draw's error is {min(gains):.1f} to {max(gains):.1f} times that of the best "
        f"of {setting.n_samples}, and in {worse} of {len(one)} cells above the {short(plain)} of the mean image."
    )


def _errors(setting: DeepSetting, records: Records, method: str) -> dict[int, float]:
    """Dimension → error, where it was measured."""
    values = {d: records.value(method, d, setting.share, _ERROR) for d in setting.dimensions}
    return {d: value for d, value in values.items() if value is not None}


def _change(errors: Mapping[int, float]) -> float | None:
    """From the smallest dimension to the largest, relative."""
    return errors[max(errors)] / errors[min(errors)] - 1 if len(errors) > 1 else None
