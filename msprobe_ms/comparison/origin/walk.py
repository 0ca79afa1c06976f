"""One walk over the nodes of a comparison, in the order of execution: what explains each, and which cause speaks."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Set
from functools import cached_property

from msprobe_ms.comparison.model import Allowance, Effect, Origin, Row
from msprobe_ms.comparison.origin.amplification import Amplification
from msprobe_ms.comparison.origin.causes import CAUSES
from msprobe_ms.comparison.origin.causes.wrong_optimizer import WrongOptimizer
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.explanations import EXPLANATIONS
from msprobe_ms.comparison.origin.explanations.inherited_error import InheritedError
from msprobe_ms.comparison.origin.explanations.rounding import Rounding
from msprobe_ms.comparison.origin.explanations.waves import Waves
from msprobe_ms.comparison.origin.first_step import evidence_at_first
from msprobe_ms.comparison.origin.nodes import Node, error_ratio, is_of_all_elements
from msprobe_ms.comparison.origin.other_settings import OtherSettings
from msprobe_ms.comparison.origin.protocols import Cause, Explanation, Found, Phase, Surveyed
from msprobe_ms.comparison.origin.reached import ReachedError
from msprobe_ms.comparison.origin.wrong_at_first import WrongAtFirst

#: Rows of which it is kept what explanations allowed.
_ASKED = 2_000
#: Times that a value may be further apart than the result that it is: sketches show it otherwise in another shape.
_HANDED_ON = 2.0


class Walk:
    """One walk over the nodes of the evidence.

    ``turn``             the node that is being visited
    ``reached``          how far error has come
    ``largest_allowed``  name of an explanation → the largest deviation that it explained so far
    ``origins``          nodes where error begins → their place in the order, and what is told
    ``doubted``          the same of inputs and results in another form, which count where there are no others
    ``tried``            of watched rows, what each explanation allowed
    ``settings``         what calls were given other settings than their counterparts
    """

    def __init__(self, evidence: Evidence, watched: Collection[Row] = ()) -> None:
        self.evidence = evidence
        self.turn: Node | None = None
        self.reached = ReachedError(updated=evidence.updated, same_framework=evidence.same_framework)
        self.largest_allowed: dict[str, float] = {}
        self.origins: dict[Node, tuple[float, Origin]] = {}
        self.doubted: dict[Node, tuple[float, Origin]] = {}
        self.tried: dict[Row, list[tuple[str, Allowance | None]]] = {row: [] for row in watched}
        self._amplification = None if evidence.first_step is None else Amplification(evidence, evidence.drift)
        self._explanations: dict[Phase, list[Explanation]] = {phase: [] for phase in Phase}
        for each in EXPLANATIONS:
            explanation = each(evidence)
            if isinstance(explanation, Surveyed):
                for row, tried in self.tried.items():
                    tried.append((explanation.name, explanation.allowance(row)))
                evidence.let_pass(self._still_beside_others(explanation))
            else:
                self._explanations[explanation.phase].append(explanation)
        self.settings = OtherSettings(evidence)
        self._wrong_at_first = WrongAtFirst(evidence)
        self._causes: list[Cause] = [each(evidence) for each in CAUSES]
        self._wrong_optimizer = WrongOptimizer(evidence)
        #: Calls that have called a node visited so far.
        self._entered: set[Node] = set()
        self._told: set[Node] = set()
        self._told_modules: set[str] = set()
        self._saved: Node | None = None

    def visit(self, node: Node) -> bool:
        """Judge one node; False when nothing after it can be told."""
        self.turn = node
        is_save = node.is_save
        if is_save:
            # A save has no inputs: what was saved before it is what it is computed from.
            node.ratio_in, node.before, self._saved = self.reached.largest, self._saved, node
        # Through the loss, a forward fault reaches every gradient of the step; and what is saved later inherits.
        if node.is_backward or is_save or node.is_update:
            self.settle()
            if self.origins:
                return False
        self._enter(node.parent)
        if node.is_update:
            if origin := self._wrong_optimizer.find(node):
                self._note(Found(node, origin))
            return True
        if found := self.judge(node):
            self._note(found)
        if self._amplification is not None:
            self._amplification.passed(node)
        self.reached.note(node)
        if not node.is_module:
            node.forget()  # which nobody asks for any more: of a million calls that takes 80 MB
        return True

    def _enter(self, node: Node | None) -> None:
        """Note what a call is given, and explained, before what it calls is judged: it stands behind that."""
        if node is None or node in self._entered:
            return
        self._entered.add(node)
        self._enter(node.parent)
        if node.is_backward or node.ratio_in <= 1:
            return
        for row in node.rows("input"):
            if (ratio := error_ratio(row)) > 1 and self._allows(row, node):
                self.reached.note_given(node, ratio)

    def _allows(self, row: Row, node: Node) -> bool:
        """Whether an explanation lets pass all of a value's deviation."""
        allowances = (each.allows(row, node, self) for each in self._explanations[Phase.WALK])
        return any(each is not None and (row.deviation or 0.0) <= each.up_to for each in allowances)

    def judge(self, node: Node) -> Found | None:
        """The first cause that speaks of ``node``; None where nothing is wrong with it."""
        unexplained = self.explain(node)
        if not unexplained and not self.may_begin_at(node):
            return None
        for cause in self._causes:
            if (found := cause.find(node, unexplained, self)) is not None:
                return found
        return None

    def explain(self, node: Node) -> list[Row]:
        """Let pass the rows of ``node`` that an explanation explains whole; return those that none does."""
        node.forget()
        negligible = self.reached.negligible(node)
        if max(node.ratio_in, node.ratio_parameters, node.ratio_out) <= negligible:
            return []
        unexplained, explanations, begun = [], self._explanations[Phase.WALK], 0.0
        for row in node.pair.rows:
            ratio, before = error_ratio(row), row.explained
            if not ratio > negligible or (before is not None and before.effect is Effect.NO_EFFECT):
                continue
            limit = self._limit(row, node) if ratio > 1 else None
            if self.tried and row in self.tried:
                self.tried[row] += [(each.name, _limited(each.allows(row, node, self), limit)) for each in explanations]
            deviation = row.deviation or 0.0
            asked: list[tuple[str, Allowance | None]] | None = None
            if ratio > 1 and len(self.evidence.asked) < _ASKED:
                asked = self.evidence.asked[row] = [] if before is None else [(before.by, before)]
            for explanation in explanations:
                allowance = explanation.allows(row, node, self)
                if limit is not None:
                    allowance = _limited(allowance, limit)
                if asked is not None:
                    asked.append((explanation.name, allowance))
                if allowance is not None and deviation <= allowance.up_to:
                    if allowance.up_to > self.largest_allowed.get(allowance.by, 0.0):
                        self.largest_allowed[allowance.by] = allowance.up_to
                    break
            else:
                allowance = None
                unexplained.append(row)
            if ratio > 1 and (before is None or before.effect is Effect.PASSES):
                row.explained = allowance
                if allowance is not None and allowance.effect is not Effect.PASSES:
                    node.forget()
                # What is taken in has come from elsewhere, but for waves, which code around the call makes.
                if (
                    allowance is not None
                    and (row.state != "input" or allowance.by == Waves.name)
                    and _begins_here(allowance)
                ):
                    begun = max(begun, ratio)
        for up in node.ancestors() if begun else ():  # what encloses it gives out what is computed from it
            up.ratio_inside = max(up.ratio_inside, begun)
        return unexplained

    def _limit(self, row: Row, node: Node) -> float | None:
        """The deviation that error that comes in explains of what a call is known to compute otherwise; None: any."""
        handed_on = self._handed_on(row, node)
        if row.state != "output":
            return handed_on
        by_settings = self.settings.limit(row, node, agreed_at_first=self.agreed_at_first(row))
        limits = handed_on, by_settings, self._wrong_at_first.limit(row, node)
        known = [each for each in limits if each is not None]
        return min(known) if known else None

    def _handed_on(self, row: Row, node: Node) -> float | None:
        """The deviation of a value that is an earlier result on the golden side, and should be on the target side."""
        if self.origins or self.doubted or node.is_backward or row.state not in ("input", "output"):
            return None
        source = self.evidence.unrecorded.handed_on(node, row)
        if source is None or source.deviation is None or is_of_all_elements(source) < is_of_all_elements(row):
            return None  # statistics of the one may not show what elements of the other do
        return _HANDED_ON * source.deviation + (row.held_to or 0.0)

    def _still_beside_others(self, explanation: Surveyed) -> Mapping[Row, tuple[Node, Allowance]]:
        """What a survey found, but for values of forward that stood beside their counterparts in the first step."""
        if self._amplification is None or explanation.effect is not Effect.NO_ERROR:
            return explanation.found
        agreed = self._amplification.first
        return {
            row: (node, allowance)
            for row, (node, allowance) in explanation.found.items()
            if node.is_backward or row.state == "parameters" or not agreed(row)
        }

    def agreed_at_first(self, row: Row) -> bool:
        """Whether a value of a later step is known to have agreed in the first one."""
        return self._amplification is not None and self._amplification.first(row) is not None

    def stood_beside_another(self, row: Row) -> bool:
        """Whether a value of a later step is known to have stood beside another than its counterpart in the first."""
        return row.target is not None and row.target.name in self._beside_others_at_first

    @cached_property
    def _beside_others_at_first(self) -> Set[str]:
        """Names of the values that surveys of the first step let pass; made when a value is asked for."""
        if (first := evidence_at_first(self.evidence)) is None:
            return frozenset()
        for each in EXPLANATIONS:
            if issubclass(each, Surveyed) and each.effect is Effect.NO_ERROR:
                first.let_pass(each(first).found)
        rows = (row for node in first.nodes for row in node.pair.rows if row.explained is not None)
        names = frozenset(row.target.name for row in rows if row.target is not None)
        first.release()
        return names

    def amplified(self, row: Row, node: Node) -> float | None:
        """The deviation that what ``row`` is computed from explains by the first step; None where it does not tell.

        Nor does it once there is an origin, which the values behind it follow from.
        """
        if self._amplification is None or self.origins or self.doubted:
            return None
        return self._amplification.bound(row, node)

    def comes_from_the_loss(self, row: Row, node: Node) -> bool:
        """Whether it is a gradient that arrives before any of a module was computed."""
        return self._amplification is not None and self._amplification.is_of_loss(row, node)

    def no_more_than_amplified(self, allowance: Allowance, row: Row, node: Node) -> Allowance:
        """Bound what explains a value by what comes before it, where the first step tells how much it amplifies."""
        bound = self.amplified(row, node)
        return allowance if bound is None else allowance._replace(up_to=min(bound, allowance.up_to))

    def explained_by_chance(self, row: Row, node: Node) -> Allowance | None:
        """Return what random numbers explain of an origin's row: its whole difference, or none of it.

        None where they have nothing to do with it; where they may but cannot be shown to, the allowance is 0 and has a
        sentence that says so.
        """
        allowed = (each.allows(row, node, self) for each in self._explanations[Phase.ORIGIN])
        found = next(filter(None, allowed), None)
        if found is not None and found.up_to and row.explained is None:
            row.explained = found
        return found

    def is_untold(self, node: Node) -> bool:
        """Whether nothing was told of the node, of a call inside it, or of its module's parameters."""
        return node not in self._told and node.module not in self._told_modules

    def may_begin_at(self, node: Node) -> bool:
        """Whether an origin may lie at a node of which all is explained: in forward, before there is one."""
        return not (self.origins or node.is_backward) and self.is_untold(node)

    def hold_to_negligible(self, node: Node) -> None:
        """Hold the rows of an origin to less than their tolerance where all was equal to the bit so far."""
        negligible = self.reached.negligible(node)
        if negligible < 1:
            rows = [row for row in node.pair.rows if negligible < error_ratio(row) <= 1 and row.held_to is not None]
            for row in rows:
                self.hold(row, node, negligible * (row.held_to or 0.0))

    def hold(self, row: Row, node: Node, up_to: float) -> None:
        """Hold a row of an origin to the deviation ``up_to`` instead of its tolerance."""
        row.explained = Allowance(Rounding.name, up_to, effect=Effect.HOLDS)
        node.measure()

    def doubt(self, node: Node, origin: Origin) -> None:
        """Note an origin that counts where there is no other; the first of its kind says what there is to say."""
        if all((origin.state == "input") != (each.state == "input") for _, each in self.doubted.values()):
            self.doubted[node] = node.order, origin

    def settle(self) -> None:
        """Take back what was doubted where another origin stands on its own; else tell it with what follows from it.

        Of a result in another form follows what takes it in, not a parameter, nor a result of inputs that agree.
        """
        doubted, self.doubted = self.doubted, {}
        results = {node: each for node, each in doubted.items() if each[1].state != "input"}
        first = min((node.order for node in results), default=math.inf)
        if not any(node.order < first or _stands_alone(node, each) for node, (_, each) in self.origins.items()):
            self.origins = {**results, **self.origins}
        self.origins = self.origins or doubted

    def _note(self, found: Found) -> None:
        if found.node is None:
            return
        if found.origin is not None:
            # What a call took in, and its parameters, were there before all that it called, though its entry stands
            # behind them.
            turn, before = self.turn or found.node, found.origin.state in ("input", "parameters")
            place = min(found.node.order, turn.order) if before else found.node.order
            self.origins[found.node] = place, found.origin
        node: Node | None = found.node
        while node is not None and node not in self._told:  # of one that was told, all around it were
            self._told.add(node)
            node = node.parent
        if found.whole_module:
            self._told_modules.add(found.node.module)


def _limited(allowance: Allowance | None, limit: float | None) -> Allowance | None:
    """What is left of an allowance where error that comes in explains no more than ``limit``; None: anything."""
    if allowance is None or limit is None or allowance.effect is not Effect.PASSES:
        return allowance
    return allowance._replace(up_to=min(allowance.up_to, limit))


def _begins_here(allowance: Allowance) -> bool:
    """Whether what an explanation lets pass may have come into being in the call itself: it says how much may."""
    return math.isfinite(allowance.up_to) and allowance.by != InheritedError.name


def _stands_alone(node: Node, origin: Origin) -> bool:
    return origin.state == "parameters" or (origin.state != "input" and node.ratio_in <= 1)
