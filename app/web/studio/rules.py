"""How the figures are protected: the rules as a form on a draft, written to the same file as by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from starlette.responses import Response

from app.domain.errors import Mistake, OperatorError, UserError
from app.domain.people import Permission
from app.domain.version import Files, Version
from app.office.protection import DECISIONS, Effect
from app.office.rules_form import (
    BY_MEASURE,
    FILE,
    PARAMETERS,
    WEIGHTS,
    DecisionForm,
    MeasureForm,
    RuleForm,
    RulesForm,
    measures_of,
    read_rules,
    write_rules,
)
from app.web.language import marked as _
from app.web.studio.drafts import draft_as_read, draft_link, draft_of
from app.web.studio.protection import DECISION_WORDS
from app.web.studio.publication import publication_link
from app.web.studio.reasons import RULE_WORDS, reason_said
from app.web.studio.routes import Routes
from app.web.studio.visit import Frame, RefusedError, Visit, status_of

routes = Routes()

_MOST_MEASURES = 500
_MOST_RULES = 20
_MOST_DECISIONS = 2000


routes.tab(_("Rules"), "/studio/rules", Permission.READ_OFFICE, 45)

#: What each number of a rule is.
PARAMETER_WORDS = {
    ("threshold", "n"): _("n: fewer contributors are too few"),
    ("threshold", "p"): _("protection of amounts, %"),
    ("dominance", "n"): _("n: the largest contributors"),
    ("dominance", "k"): _("k: make up more than, %"),
    ("p-percent", "p"): _("p: the largest is estimated within, %"),
    ("request", "k"): _("k: whoever asked makes up more than, %"),
    ("zero", "width"): _("how far a zero may be guessed"),
}
#: What a rule begins with when it is added.
BEGIN: Mapping[str, Mapping[str, str]] = {
    "threshold": {"n": "3", "p": "10"},
    "dominance": {"n": "1", "k": "85"},
    "p-percent": {"p": "10"},
    "request": {"k": "70"},
    "zero": {"width": "10"},
}
WEIGHT_WORDS = {
    "value": _("its value"),
    "unit": _("one for each cell"),
    "log": _("the logarithm of its value"),
    "distance": _("its distance from sensitive cells"),
}


@dataclass(frozen=True)
class Said:
    """A measure's protection in words: for those who read it."""

    measure: str
    rules: tuple[str, ...]
    protector: str
    weight: str
    silent: bool
    unions: bool


@dataclass(frozen=True, eq=False)
class RulesPage:
    """The rules in force, or those of a draft, for reading."""

    template: ClassVar[str] = "studio/rules.html"
    frame: Frame
    cubes: tuple[tuple[str, tuple[Said, ...]], ...]
    form: RulesForm | None
    decisions: Mapping[str, str]
    mistakes: tuple[Mistake, ...]
    exists: bool


@dataclass(frozen=True, eq=False)
class RulesEditorPage:
    """The rules of a draft as a form; ``effect`` is what they do to the cells of the last run."""

    template: ClassVar[str] = "studio/rules_form.html"
    frame: Frame
    draft: int
    revision: int
    form: RulesForm
    cubes: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, str]
    parameters: Mapping[tuple[str, str], str]
    keys: Mapping[str, tuple[str, ...]]
    weights: tuple[tuple[str, str], ...]
    decisions: tuple[tuple[str, str], ...]
    mistakes: tuple[Mistake, ...]
    effect: Effect | None
    text: str


@routes.get("/studio/rules", Permission.READ_OFFICE)
def rules_page(visit: Visit) -> Response:
    """The rules of the current version, and of drafts that say otherwise."""
    current = visit.office.versions.current()
    files = Files({}) if current is None else visit.office.versions.files(current)
    return visit.page(_read_page(visit, visit.frame(visit.say(_("Rules"))), files, current is not None))


@routes.post("/studio/rules", Permission.SET_RULES)
def begin(visit: Visit) -> Response:
    """A draft to change the rules on."""
    draft = visit.office.drafting.begin(visit.actor, visit.origin)
    return visit.redirect(f"/studio/drafts/{draft.id}/rules")


@routes.get("/studio/drafts/{draft:int}/rules", Permission.READ_OFFICE)
def editor(visit: Visit) -> Response:
    """The rules of a draft: as a form for those who may set them."""
    draft = draft_of(visit)
    files = visit.office.versions.files(draft)
    if not visit.actor.may(Permission.SET_RULES):
        return visit.page(_read_page(visit, _frame(visit, draft), files, FILE in files.texts))
    if FILE not in files.texts:
        raise RefusedError(404)
    try:
        form = read_rules(files.texts[FILE], measures_of(files))
    except UserError:
        return visit.redirect(_text(draft))
    return visit.page(_form_page(visit, draft, files, form, _mistakes(visit, files)))


@routes.post("/studio/drafts/{draft:int}/rules", Permission.SET_RULES)
def save(visit: Visit) -> Response:
    """Save the form, with a rule more or less where that was asked for; it is kept with its mistakes."""
    draft = draft_of(visit)
    files = visit.office.versions.files(draft)
    if FILE not in files.texts:
        raise RefusedError(404)
    cubes = measures_of(files)
    form, do = _typed(visit), visit.text("do", "save")
    try:
        draft_as_read(visit)
        text = write_rules(files.texts[FILE], form, cubes)
        saved = visit.office.drafting.put_texts(visit.actor, draft, {FILE: text}, visit.origin)
    except UserError as error:
        told = visit.mistakes(error.mistakes)
        return visit.page(_form_page(visit, draft, files, form, told), status_of(error))
    files = visit.office.versions.files(saved)
    form = read_rules(files.texts[FILE], cubes)
    mistakes = _mistakes(visit, files)
    if do == "save" and not mistakes:
        return visit.redirect(f"/studio/drafts/{draft.id}/rules", "saved")
    if do != "effect" or mistakes:
        return visit.page(_form_page(visit, saved, files, form, mistakes))
    try:
        effect = visit.office.protection.effect(visit.office.previews.publication(files))
    except (UserError, OperatorError) as error:
        told = error.mistakes if isinstance(error, UserError) else (Mistake("", 0, 0, str(error)),)
        return visit.page(_form_page(visit, saved, files, form, visit.mistakes(told)), 422)
    return visit.page(_form_page(visit, saved, files, form, (), effect))


# ---------------------------------------------------------------------- parts


def _text(draft: Version) -> str:
    return f"/studio/drafts/{draft.id}/text/{FILE}"


def _frame(visit: Visit, draft: Version) -> Frame:
    return visit.frame(visit.say(_("Rules")), publication_link(visit), draft_link(visit, draft))


def _mistakes(visit: Visit, files: Files) -> tuple[Mistake, ...]:
    """What `celosia check` says of the file."""
    found = visit.office.previews.mistakes(files)
    return visit.mistakes(item for item in found if item.file == FILE)


def _form_page(
    visit: Visit,
    draft: Version,
    files: Files,
    form: RulesForm,
    mistakes: tuple[Mistake, ...],
    effect: Effect | None = None,
) -> RulesEditorPage:
    return RulesEditorPage(
        frame=_frame(visit, draft),
        draft=draft.id,
        revision=draft.revision,
        form=form,
        cubes=measures_of(files),
        rules={name: visit.say(words) for name, words in RULE_WORDS.items()},
        parameters={key: visit.say(words) for key, words in PARAMETER_WORDS.items()},
        keys={name: (*needed, *optional) for name, (needed, optional) in PARAMETERS.items()},
        weights=tuple((name, visit.say(WEIGHT_WORDS[name])) for name in WEIGHTS),
        decisions=tuple((name, visit.say(DECISION_WORDS[name])) for name in DECISIONS),
        mistakes=mistakes,
        effect=None if effect is None else _in_words(visit, effect),
        text=_text(draft),
    )


def _in_words(visit: Visit, effect: Effect) -> Effect:
    rules = tuple((reason_said(name, visit.language), now, then) for name, now, then in effect.rules)
    return replace(effect, rules=rules)


def _read_page(visit: Visit, frame: Frame, files: Files, exists: bool) -> RulesPage:
    form: RulesForm | None = None
    mistakes: tuple[Mistake, ...] = ()
    try:
        form = read_rules(files.texts.get(FILE, ""), measures_of(files))
    except UserError as error:
        mistakes = visit.mistakes(error.mistakes)
    names = dict.fromkeys(item.cube for item in form.measures) if form is not None else {}
    cubes = tuple(
        (cube, tuple(_said(visit, item) for item in form.measures if item.cube == cube))
        for cube in names
        if form is not None
    )
    words = {name: visit.say(text) for name, text in DECISION_WORDS.items()}
    return RulesPage(frame, cubes, form, words, mistakes, exists)


def _said(visit: Visit, item: MeasureForm) -> Said:
    rules = tuple(_rule_said(visit, rule) for rule in item.rules)
    if item.weight.startswith(BY_MEASURE):
        weight = visit.say(_("the value of {measure}"), measure=item.weight.removeprefix(BY_MEASURE))
    else:
        weight = visit.say(WEIGHT_WORDS[item.weight])
    silent = not (item.rules or item.protector or item.stated)
    return Said(item.measure, rules, item.protector, weight, silent, item.unions)


def _rule_said(visit: Visit, rule: RuleForm) -> str:
    numbers = ", ".join(f"{key} = {value}" for key, value in rule.parameters.items())
    return f"{visit.say(RULE_WORDS[rule.rule])}: {numbers}"


def _typed(visit: Visit) -> RulesForm:
    """The form as it was typed, changed by the button that sent it."""
    do = visit.text("do")
    measures = []
    for number in range(_MOST_MEASURES):
        if f"m{number}.name" not in visit.form:
            break
        measures.append(_measure(visit, number, do))
    decisions = []
    for number in range(_MOST_DECISIONS):
        if f"d{number}.decision" not in visit.form:
            break
        if do == f"drop-d{number}":
            continue
        decision = visit.text(f"d{number}.decision")
        decisions.append(
            DecisionForm(
                visit.text(f"d{number}.cube"),
                visit.text(f"d{number}.measure"),
                visit.texts(f"d{number}.member"),
                decision if decision in DECISIONS else "hide",
                visit.text(f"d{number}.percent").strip(),
                visit.text(f"d{number}.reason").strip()[:1000],
            )
        )
    return RulesForm(
        visit.text("zeros") == "hide",
        visit.text("insiders") == "yes",
        visit.text("effort").strip(),
        tuple(measures),
        tuple(decisions),
    )


def _measure(visit: Visit, number: int, do: str) -> MeasureForm:
    rules = []
    for place in range(_MOST_RULES):
        name = visit.text(f"m{number}.r{place}.rule")
        if name in PARAMETERS and do != f"drop-m{number}.r{place}":
            needed, optional = PARAMETERS[name]
            typed = {key: visit.text(f"m{number}.r{place}.{key}").strip() for key in (*needed, *optional)}
            rules.append(RuleForm(name, {key: value for key, value in typed.items() if value}))
    added = visit.text(f"m{number}.add")
    if added in BEGIN:
        rules.append(RuleForm(added, dict(BEGIN[added])))
    weight = visit.text(f"m{number}.weight", "value")
    item = MeasureForm(
        visit.text(f"m{number}.cube"),
        visit.text(f"m{number}.name"),
        visit.text(f"m{number}.protector"),
        weight if weight in WEIGHTS or weight.startswith(BY_MEASURE) else "value",
        tuple(rules),
        visit.text(f"m{number}.stated") == "yes",
        visit.text(f"m{number}.unions") == "yes",
    )
    return replace(item, stated=item.stated and not item.rules)
