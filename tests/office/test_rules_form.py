"""The rules' form and the text that it is written to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.domain.errors import UserError
from app.domain.version import Files
from app.office.rules_form import MeasureForm, RuleForm, RulesForm, measures_of, read_rules, write_rules
from tests.pipeline.offices import CUBE, PUBLICATION

CUBES = {"Firms": ("Firms", "Turnover")}
DECISIONS = """
[[confidentiality.cells]] # asked for by letter
measure = "Firms"
members = ["[Place].[Town].&[a1]"]
decision = "hide"
percent = 20
reason = "asked"
[[confidentiality.cells]]
cube = "Firms"
measure = "Turnover"
members = []
decision = "waive"
reason = "known anyway"
"""
TEXT = (
    PUBLICATION.replace("weight =", "# by the number of firms\nweight =", 1)
    + DECISIONS
    + "[release]\nkeep = 3\n"
)


def of(form: RulesForm, measure: str) -> MeasureForm:
    return next(item for item in form.measures if item.measure == measure)


def with_measure(form: RulesForm, item: MeasureForm) -> RulesForm:
    measures = tuple(item if (item.cube, item.measure) == (m.cube, m.measure) else m for m in form.measures)
    return replace(form, measures=measures)


def test_a_form_shows_what_is_written_and_writes_nothing_else() -> None:
    assert measures_of(Files({"cubes/firms.toml": CUBE, "cubes/other.toml": "name ="})) == CUBES
    form = read_rules(TEXT, CUBES)
    turnover = of(form, "Turnover")
    assert (turnover.protector, turnover.weight) == ("Firms", "value")
    assert turnover.rules == (
        RuleForm("p-percent", {"p": "10"}),
        RuleForm("dominance", {"n": "1", "k": "85"}),
    )
    assert [item.reason for item in form.decisions] == ["asked", "known anyway"]
    assert write_rules(TEXT, form, CUBES) == TEXT


@pytest.mark.parametrize("n", ["5", "7"])
def test_changes_are_written_where_they_belong(n: str) -> None:
    form = read_rules(TEXT, CUBES)
    firms = replace(
        of(form, "Firms"),
        rules=(RuleForm("threshold", {"n": n, "p": "7,5"}), RuleForm("zero", {"width": "10"})),
    )
    turnover = replace(of(form, "Turnover"), weight="measure:Firms", protector="", unions=True)
    changed = with_measure(with_measure(form, firms), turnover)
    kept = (replace(form.decisions[1], decision="show", reason="asked again"),)
    changed = replace(changed, hide_zeros=True, insiders=False, effort="12", decisions=kept)
    text = write_rules(TEXT, changed, CUBES)
    again = read_rules(text, CUBES)
    assert again.hide_zeros
    assert not again.insiders
    assert (again.effort, again.decisions) == ("12", kept)
    assert of(again, "Firms").rules[0] == RuleForm("threshold", {"n": n, "p": "7.5"})
    assert of(again, "Turnover") == turnover
    assert text.count("unions = true") == 1
    assert "# by the number of firms" in text
    assert "keep = 3" in text
    assert "asked for by letter" not in text
    back = write_rules(text, replace(form, decisions=kept), CUBES)
    assert read_rules(back, CUBES) == replace(form, decisions=kept)


def test_silence_is_not_the_same_as_no_rule() -> None:
    cubes = {**CUBES, "Shops": ("Staff",)}
    form = read_rules(TEXT, cubes)
    staff = of(form, "Staff")
    assert staff == MeasureForm("Shops", "Staff", "", "value", (), False)
    said = write_rules(TEXT, with_measure(form, replace(staff, stated=True)), cubes)
    assert of(read_rules(said, cubes), "Staff").stated
    assert "rules = []" in said
    assert write_rules(said, form, cubes).count("rules = []") == 0
    empty = read_rules("", {})
    assert "insiders = false" in write_rules("", replace(empty, insiders=False), {})


@pytest.mark.parametrize(
    "text",
    [
        "[confidentiality",
        "confidentiality = 3",
        "[confidentiality]\nzeros = 'some'",
        "[confidentiality.Firms.Firms]\nrules = 'none'",
        "[confidentiality.Firms.Firms]\nrules = [{ rule = 'guess', n = 3 }]",
        "[confidentiality.Firms.Firms]\nrules = [{ rule = 'threshold', n = 'three' }]",
        "[confidentiality.Firms.Firms]\nweight = 'heavy'",
        "[[confidentiality.cells]]\ndecision = 'maybe'",
    ],
)
def test_what_the_form_can_t_show_is_left_to_the_text(text: str) -> None:
    with pytest.raises(UserError) as caught:
        read_rules(text, CUBES)
    assert caught.value.mistakes[0].file == "publication.toml"


@pytest.mark.parametrize("typed", ["three", "nan", "1e400", "3 4"])
def test_what_is_no_number_is_told(typed: str) -> None:
    form = read_rules(TEXT, CUBES)
    firms = replace(of(form, "Firms"), rules=(RuleForm("threshold", {"n": typed}),))
    with pytest.raises(UserError, match="isn't a number"):
        write_rules(TEXT, with_measure(form, firms), CUBES)


def test_names_with_quotes_and_dots_stay_themselves() -> None:
    cubes = {'Fir"ms. x': ("Añ\\o.3",)}
    form = read_rules("", cubes)
    item = replace(form.measures[0], rules=(RuleForm("threshold", {"n": "3"}),))
    text = write_rules("languages = ['en'] # kept\n", replace(form, measures=(item,)), cubes)
    assert read_rules(text, cubes).measures == (item,)
