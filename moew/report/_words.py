"""What a report says in words; every function returns plain text, not markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moew._util.numbers import alike, count, ends, number, signed, with_margin
from moew.report._record import Report, Strategy, from_json
from moew.search import CONSTANT, MOEW, RANDOM, TUNED, UNWEIGHTED, called, is_singular

QUESTION = "Is there a better model for this metric than the unweighted one?"
# No arrows: up would be taken for a number that rises, which is worse for an error.
MARKS = {"better": "✓", "maybe": "?", "no": "=", "worse": "✗", "none": "=", "unknown": "?", "bound": "≤"}
_OUT = " ✗"  # behind the names of strategies that do not keep the bounds


def told(data: Mapping[str, Any]) -> list[str]:
    """The verdict in a few sentences, for a terminal."""
    report = from_json(data)
    lines = (headline, how_much, how_sure, over_repeats)
    said = [line(report) for line in lines] + remarks(report) + [why(report), from_what(report)]
    return [line for line in said if line]


def advice(data: Mapping[str, Any]) -> str:
    """What to do next."""
    return next_step(from_json(data))


def headline(report: Report) -> str:
    """The answer, with the selected strategy."""
    strategy, kind, bound = report.selected.name, report.verdict.kind, report.bound
    if bound is not None and bound.kept:
        keep = "keep" if _be(strategy) == "are" else "keeps"
        return f"{_start(strategy)} {keep} {bound.text} with its margin; the unweighted model does not."
    if bound is not None:
        return f"Nothing that was tried keeps {bound.text} with its margin."
    if strategy == CONSTANT and kind in ("better", "maybe"):
        return "Look at the metric: the same answer for every row scores best."
    return {
        "better": f"Yes: {called(strategy)}.",
        "maybe": f"Perhaps: {called(strategy)}, but that is not certain.",
        "no": f"No: {called(strategy)} {_be(strategy)} not better.",
        "worse": f"No: {called(strategy)} {_be(strategy)} worse.",
        "none": "No: keep the unweighted model.",
        "unknown": "This cannot be told.",
    }[kind]


def how_much(report: Report) -> str:
    """The two scores, and their difference as a share."""
    verdict, strategy = report.verdict, called(report.selected.name)
    before, after, name = verdict.before, verdict.after, report.metric.name
    set_aside = "rows set aside" if report.metric.n_holdout else report.metric.evaluation
    where = "on the test rows" if verdict.evidence == "test" else f"by honest scores on {set_aside}"
    if verdict.kind == "none":
        score = "" if before is None else f" Its {name} is {number(before)}, {where}."
        return f"The selected model is the unweighted model.{score}"
    if before is None or after is None:
        return f"Selected: {strategy}. There is no honest score of both models to set side by side."
    shown = before_and_after(report)
    share = "" if before in (0, after) else f" ({signed(100 * (after - before) / abs(before), 2)} %)"
    return (
        f"With {strategy} the {name} is {shown[1]} instead of {shown[0]}{share}, {where}; "
        f"{report.metric.better} is better."
    )


def how_sure(report: Report) -> str:
    """What the interval says about the gain."""
    kind, low, high = report.verdict.kind, report.verdict.low, report.verdict.high
    if kind in ("none", "unknown"):
        return ""
    if low is None or high is None:
        return "How sure that is cannot be said: the scores have no interval here."
    if low == high == 0:
        return "Both score the same, whichever of these rows are looked at."
    first, last = ends(low, high)
    interval = f"The 95 % interval of the gain goes from {first} to {last}"
    if low > 0 or high < 0:
        return f"{interval}: it lies wholly {'above' if low > 0 else 'below'} zero."
    chance = ", so that chance alone could explain the gain" if kind == "maybe" else ""
    return f"{interval}: it includes zero{chance}."


def over_repeats(report: Report) -> str:
    """The mean gain of the whole search over the repeats; empty without a comparison."""
    repeats, compared = report.repeats, report.comparison
    if repeats is None or compared is None:
        return ""
    after, before = alike([repeats.after, repeats.before], errors=[repeats.half])
    luck = {
        "maybe": "; chance alone could explain that",
        "no": "; so other seeds do not gain",
        "worse": "; so other seeds lose",
    }.get(repeats.kind, "")
    gain = with_margin(repeats.gain, repeats.half, sign=True)
    return (
        f"The whole search, repeated {compared['repeats']} times with other seeds, gains {gain} on average "
        f"on {count(compared['n_test'], 'test row')}: {after} instead of {before}{luck}."
    )


def remarks(report: Report) -> list[str]:
    """What is remarkable in a comparison: strategies that are better than what moew selects, and random
    weights or simple strategies alone that do as well."""
    repeats = report.repeats
    if repeats is None or repeats.kind not in ("better", "maybe"):
        return []
    said, as_good = [], []
    for other in repeats.others:
        name = called(method_name(other.method))
        if other.ahead is None or other.margin is None:
            continue
        if other.ahead > other.margin:
            said.append(
                f"{capital(name)} alone, with as many models, did better in the repeats than what moew "
                f"selects, by {with_margin(other.ahead, other.margin)}."
            )
        elif abs(other.ahead) <= other.margin:
            as_good.append(other.method)
    if RANDOM in as_good:
        said.append(
            "Random weights, the best of as many models, did as well in the repeats: what helps is to try "
            "many models, not to learn weights."
        )
    simple = [called(method_name(name)) for name in as_good if name not in (RANDOM, report.selected.name)]
    if simple:
        said.append(f"Simpler, and as good in the repeats as far as can be told: {'; '.join(simple)}.")
    return said


def why(report: Report) -> str:
    """Why this strategy is selected, and what the others reach."""
    if selected_strategy(report) is None:
        return ""
    if report.bound is not None and report.bound.kept:
        return "Strategies that do not keep the bound were left out, whatever they reach by the metric."
    if report.bound is not None:
        return "It comes closest to the bound, whatever others reach by the metric."
    if not report.selected.selects:
        other = _best_simple(report)
        rest = "" if other is None else f"; {_reaches(other)}"
        alone = "The search was asked for example weights alone: they are selected"
        return f"{alone} whatever simpler strategies reach{rest}."
    others = [one for one in report.strategies if not one.selected]
    constant = next((one for one in others if one.name == CONSTANT), None)
    rival = _best_of([one for one in others if one is not constant])
    said = [] if rival is None else [_against(rival, report.selected.name)]
    if constant is not None and (constant.difference or 0) > 0:
        only = "is selected only where it is ahead of the unweighted model beyond chance"
        said.append(f"A constant {_ahead(constant)}; it {only}.")
    return " ".join(said)


def _against(rival: Strategy, strategy: str) -> str:
    """How the selected model stands to the best of the other strategies."""
    difference, margin = rival.difference or 0, rival.margin
    if difference > 0:
        return f"{_start(rival.name)} {_ahead(rival)}, too little to give up what is simpler."
    have = "has" if _be(strategy) == "is" else "have"
    sure = margin is None or margin < -difference
    chance = "" if sure else ", which is within chance"
    first = f"{_start(strategy)} {have} the best honest score"
    return f"{first}; the next best, {called(rival.name)}, {_ahead(rival)}{chance}."


def from_what(report: Report) -> str:
    """Where the evidence comes from, and what it leaves open."""
    verdict, metric = report.verdict, report.metric
    these = "The interval is for these two models."
    these = these if report.repeats else f"{these[:-1]}; another search would end with others."
    sure = "" if verdict.low is None or verdict.low == verdict.high else f" {these}"
    if verdict.evidence == "test" and report.tested is not None:
        return f"From {count(report.tested.n_rows, 'test row')} that no choice was made on.{sure}"
    if metric.honest == "holdout":
        return f"From {count(metric.n_holdout, 'row')} set aside that no search saw.{sure}"
    rows = metric.evaluation
    if metric.honest is None:
        return f"The search was asked for no honest score; the best of many scores on {rows} flatters itself."
    candidates = count(report.search.n_models, "candidate")
    among = f" and of {len(report.strategies)} strategies" if report.selected.selects else ""
    return (
        f"From honest scores on {rows}: the luck of being the best of {candidates}{among} is taken "
        "off. The search itself has seen these rows, so test rows would be the stronger evidence."
    )


def next_step(report: Report) -> str:
    """What to do: by the verdict, by what else is in the table of strategies, and by the larger error."""
    kind, strategy, repeats = report.verdict.kind, report.selected.name, report.repeats
    if report.bound is not None and report.bound.kept:
        return "Use it if the bound counts, and see below what it costs by the metric."
    if report.bound is not None:
        return (
            "The selected model comes closest. Loosen the bound, try more candidates or another model, or "
            "give more rows to evaluate on: few rows have wide margins."
        )
    if kind == "unknown":
        if report.metric.honest:
            return "Give more validation rows, so that the metric is defined on parts of them."
        return "Ask for an honest score, or evaluate both models on test rows."
    if kind in ("no", "worse", "none"):
        return _how_to_keep_it(report)
    if strategy == CONSTANT:
        use = (
            "Look at the metric before you use this, and at its direction: it is best where every row gets "
            "the same answer, so it may not be the number you mean."
        )
    elif kind == "maybe":
        return f"Before you switch, {_to_be_surer(report)}."
    elif strategy == TUNED:
        how = "its predictions are adjusted" if report.task == "regression" else "with other thresholds"
        use = f"Use it: the model is the same, only {how}. Look at who gains and who pays."
    elif not report.weights.learned:
        use = "Use it, after a look at who gains and who pays."
    else:
        use = "Use it, after a look at which rows lose weight."
    if repeats is not None and repeats.kind != "better":
        use += f" Another search may gain less: {_larger_error(report)}."
    rival = _rival(report)
    if rival is None or kind == "maybe":
        return use
    if rival.simple and not report.selected.selects:
        return f"{use} {_start(rival.name)} {_be(rival.name)} simpler, and {_ahead(rival)}."
    return f"{use} {_start(rival.name)} may be better still ({_margin(rival)}): {_MORE_ROWS}."


_MORE_ROWS = "more validation rows would tell"


def _how_to_keep_it(report: Report) -> str:
    """What to do where nothing is better than the unweighted model."""
    kind, rival, simple = report.verdict.kind, _rival(report), _best_simple(report)
    other_seeds = ""
    if report.repeats is not None and report.repeats.kind == "better":
        other_seeds = (
            " But other seeds do gain on average: fit again with another seed, or with more candidates or "
            "validation rows."
        )
    if kind == "none" and rival is not None:
        name = _start(rival.name)
        return f"Keep the unweighted model for now. {name} may be better ({_margin(rival)}): {_MORE_ROWS}."
    if kind == "none":
        return (
            "Keep the unweighted model. More candidates, or more rows to evaluate them on, might find "
            f"more; a model that is flexible enough may have nothing to gain.{other_seeds}"
        )
    if not report.selected.selects and simple is not None and (simple.difference or 0) > 0:
        return f"Let simpler strategies win, too: {called(simple.name)} {_ahead(simple)}."
    simpler = "; it is simpler, and no worse as far as can be seen" if kind == "no" else ""
    return f"Keep the unweighted model{simpler}.{other_seeds}"


def _to_be_surer(report: Report) -> str:
    """What makes the larger of the errors smaller."""
    repeats = report.repeats
    if repeats is None or repeats.of_seeds is None or repeats.of_rows is None:
        return "get more test rows" if report.verdict.evidence == "test" else "get validation or test rows"
    seeds_count = repeats.of_seeds > repeats.of_rows
    more = "give the search more validation rows or candidates" if seeds_count else "get more test rows"
    return f"{more}: {_larger_error(report)}"


def _larger_error(report: Report) -> str:
    """Which of the two kinds of chance in a comparison is the larger one."""
    repeats = report.repeats
    if repeats is None or repeats.of_seeds is None or repeats.of_rows is None:
        return "how much other seeds or test rows would change the gain is not known"
    seeds, rows = number(repeats.of_seeds, 2), number(repeats.of_rows, 2)
    if repeats.of_seeds > repeats.of_rows:
        return f"the gain differs more from seed to seed (± {seeds}) than by the test rows (± {rows})"
    return f"the gain depends more on the test rows (± {rows}) than on the seed (± {seeds})"


def before_and_after(report: Report) -> tuple[str, str]:
    """The two scores of the verdict, with as many digits as they have in the table of strategies."""
    scores = [report.verdict.before, report.verdict.after]
    before, after = alike(scores, errors=[one.margin for one in report.strategies])
    return before, after


def without_weights(report: Report) -> str:
    """That no weights are learned, and what the better strategy of example weights would have reached."""
    own = "as much as your own sample weights say" if report.weights.with_own else "the same"
    words = f"No weights are learned here: every row counts {own}."
    selected = selected_strategy(report)
    learned = _best_of([one for one in report.strategies if not one.simple])
    if learned is None or (selected is not None and not selected.simple):
        return words
    return f"{words} {capital(_reaches(learned))}."


def method_name(method: str) -> str:
    """What the page calls a method of a comparison."""
    return "what moew selects" if method == MOEW else method


def marked_name(strategy: Strategy) -> str:
    """A strategy's name in a table, with a mark where it does not keep the bounds; words tell of what is
    selected out."""
    return f"{strategy.name}{_OUT}" if _is_out(strategy) else strategy.name


def about_marks(listed: Sequence[Strategy]) -> str:
    """What the mark means, if there is one."""
    return f"{_OUT.strip()}: it does not keep the bounds." if any(map(_is_out, listed)) else ""


def _is_out(strategy: Strategy) -> bool:
    return strategy.breaks_bounds and not strategy.selected


def selected_strategy(report: Report) -> Strategy | None:
    """The entry of the selected strategy."""
    return next((strategy for strategy in report.strategies if strategy.selected), None)


def capital(text: str) -> str:
    """A text that begins a sentence."""
    return text[:1].upper() + text[1:]


def _start(strategy: str) -> str:
    """A strategy that begins a sentence."""
    return capital(called(strategy))


def _be(strategy: str) -> str:
    """The verb that goes with a strategy."""
    return "is" if is_singular(strategy) else "are"


def _best_of(strategies: Sequence[Strategy]) -> Strategy | None:
    """The strategy that is ahead of the others by its honest score, the simplest among equals."""
    known = [(one.difference, one) for one in strategies if one.difference is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def _best_simple(report: Report) -> Strategy | None:
    """The best of the simple strategies that are not selected."""
    return _best_of([one for one in report.strategies if one.simple and not one.selected])


def _rival(report: Report) -> Strategy | None:
    """The strategy that is furthest ahead of the selected model, if one is; the unweighted model is what the
    verdict is about."""
    rival = _best_of([one for one in report.strategies if not one.selected and one.name != UNWEIGHTED])
    return rival if rival is not None and (rival.difference or 0) > 0 else None


def _reaches(strategy: Strategy) -> str:
    score = number(strategy.honest, error=strategy.margin)
    return f"{called(strategy.name)} would have reached {score} ({_margin(strategy)})"


def _ahead(strategy: Strategy) -> str:
    """Where a strategy stands against the selected model: ahead, behind, by how much."""
    verb, difference = _be(strategy.name), strategy.difference or 0
    if difference == 0:
        return "scores the same" if verb == "is" else "score the same"
    where = "ahead" if difference > 0 else "behind"
    return f"{verb} {where} by {with_margin(abs(difference), strategy.margin)}"


def _margin(strategy: Strategy) -> str:
    if strategy.difference is None:
        return "no difference can be told"
    return with_margin(strategy.difference, strategy.margin, sign=True)
