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
        keep = _verb(strategy, "keeps", "keep")
        return f"{_start(strategy)} {keep} {bound.text} with its margin; the unweighted model does not."
    if bound is not None:
        return f"Nothing that was tried keeps {bound.text} with its margin."
    if strategy == CONSTANT and kind in ("better", "maybe"):
        return "Look at the metric: the same answer for every row scores best."
    return {
        "better": f"Yes: {called(strategy)}.",
        "maybe": f"Perhaps: {called(strategy)}, but that is not certain.",
        "no": f"No: {called(strategy)} {_verb(strategy)} not better.",
        "worse": f"No: {called(strategy)} {_verb(strategy)} worse.",
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
    known = [(one.method, one.ahead, one.margin) for one in repeats.others]
    sure = [(name, ahead, half) for name, ahead, half in known if ahead is not None and half is not None]
    said = [
        f"{_start(name)} alone, with as many models, did better in the repeats than what moew selects, by "
        f"{with_margin(ahead, half)}."
        for name, ahead, half in sure
        if ahead > half
    ]
    as_good = [name for name, ahead, half in sure if abs(ahead) <= half]
    if RANDOM in as_good:
        said.append(
            "Random weights, the best of as many models, did as well in the repeats: what helps is to try "
            "many models, not to learn weights."
        )
    if simple := [called(name) for name in as_good if name not in (RANDOM, report.selected.name)]:
        said.append(f"Simpler, and as good in the repeats as far as can be told: {'; '.join(simple)}.")
    return said


def why(report: Report) -> str:
    """Why this strategy is selected, and what the others reach."""
    selected, bound = report.selected.name, report.bound
    if selected_strategy(report) is None:
        return ""
    if bound is not None and bound.kept:
        return "Strategies that do not keep the bound were left out, whatever they reach by the metric."
    if bound is not None:
        return "It comes closest to the bound, whatever others reach by the metric."
    if not report.selected.selects:
        other = _best_simple(report)
        rest = "" if other is None else f"; {_reaches(other)}"
        alone = "The search was asked for example weights alone: they are selected"
        return f"{alone} whatever simpler strategies reach{rest}."
    others = [one for one in report.strategies if not one.selected]
    rival = _best_of([one for one in others if one.name != CONSTANT])
    said = []
    if rival is not None and (rival.difference or 0) > 0:
        said.append(f"{_start(rival.name)} {_ahead(rival)}, too little to give up what is simpler.")
    elif rival is not None:
        within = rival.margin is not None and rival.margin >= -(rival.difference or 0)
        said.append(
            f"{_start(selected)} {_verb(selected, 'has', 'have')} the best honest score; the next best, "
            f"{called(rival.name)}, {_ahead(rival)}{', which is within chance' * within}."
        )
    constant = next((one for one in others if one.name == CONSTANT), None)
    if constant is not None and (constant.difference or 0) > 0:
        only = "is selected only where it is ahead of the unweighted model beyond chance"
        said.append(f"A constant {_ahead(constant)}; it {only}.")
    return " ".join(said)


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
    kind, strategy, bound = report.verdict.kind, report.selected.name, report.bound
    if bound is not None and bound.kept:
        return "Use it if the bound counts, and see below what it costs by the metric."
    if bound is not None:
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
    more_rows, larger = _larger_error(report)
    if kind == "maybe" and strategy != CONSTANT:
        return f"Before you switch, {more_rows}."
    if strategy == CONSTANT:
        use = (
            "Look at the metric before you use this, and at its direction: it is best where every row gets "
            "the same answer, so it may not be the number you mean."
        )
    elif strategy == TUNED:
        how = "its predictions are adjusted" if report.task == "regression" else "with other thresholds"
        use = f"Use it: the model is the same, only {how}. Look at who gains and who pays."
    else:
        look = "which rows lose weight" if report.weights.learned else "who gains and who pays"
        use = f"Use it, after a look at {look}."
    if report.repeats is not None and report.repeats.kind != "better":
        use += f" Another search may gain less: {larger}."
    rival = _rival(report)
    if rival is None or kind == "maybe":
        return use
    if rival.simple and not report.selected.selects:
        return f"{use} {_start(rival.name)} {_verb(rival.name)} simpler, and {_ahead(rival)}."
    return f"{use} {_start(rival.name)} may be better still ({_margin(rival)}): {_MORE_ROWS}."


_MORE_ROWS = "more validation rows would tell"


def _how_to_keep_it(report: Report) -> str:
    """What to do where nothing is better than the unweighted model."""
    kind, rival, simple = report.verdict.kind, _rival(report), _best_simple(report)
    if kind == "none" and rival is not None:
        name = _start(rival.name)
        return f"Keep the unweighted model for now. {name} may be better ({_margin(rival)}): {_MORE_ROWS}."
    if kind != "none" and not report.selected.selects and simple and (simple.difference or 0) > 0:
        return f"Let simpler strategies win, too: {called(simple.name)} {_ahead(simple)}."
    advice = {
        "none": "Keep the unweighted model. More candidates, or more rows to evaluate them on, might find "
        "more; a model that is flexible enough may have nothing to gain.",
        "no": "Keep the unweighted model; it is simpler, and no worse as far as can be seen.",
    }.get(kind, "Keep the unweighted model.")
    if report.repeats is not None and report.repeats.kind == "better":
        advice += (
            " But other seeds do gain on average: fit again with another seed, or with more candidates or "
            "validation rows."
        )
    return advice


def _larger_error(report: Report) -> tuple[str, str]:
    """What makes the larger of the two kinds of chance in a comparison smaller, and which one that is."""
    repeats = report.repeats
    if repeats is None or repeats.of_seeds is None or repeats.of_rows is None:
        rows = "test rows" if report.verdict.evidence == "test" else "validation or test rows"
        return f"get more {rows}", "how much other seeds or test rows would change the gain is not known"
    seeds, rows = number(repeats.of_seeds, 2), number(repeats.of_rows, 2)
    if repeats.of_seeds > repeats.of_rows:
        larger = f"the gain differs more from seed to seed (± {seeds}) than by the test rows (± {rows})"
        return f"give the search more validation rows or candidates: {larger}", larger
    larger = f"the gain depends more on the test rows (± {rows}) than on the seed (± {seeds})"
    return f"get more test rows: {larger}", larger


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


def _verb(strategy: str, one: str = "is", several: str = "are") -> str:
    """The verb that goes with a strategy."""
    return one if is_singular(strategy) else several


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
    difference = strategy.difference or 0
    if difference == 0:
        return f"{_verb(strategy.name, 'scores', 'score')} the same"
    where = "ahead" if difference > 0 else "behind"
    return f"{_verb(strategy.name)} {where} by {with_margin(abs(difference), strategy.margin)}"


def _margin(strategy: Strategy) -> str:
    if strategy.difference is None:
        return "no difference can be told"
    return with_margin(strategy.difference, strategy.margin, sign=True)
