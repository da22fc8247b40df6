"""Forms of every kind of schema are filled in by labels, and what they give fits the type."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from pydantic import TypeAdapter

from tests.page.forms.filling import open_form, place, read, take
from tests.page.forms.zoo import ZOO, Case, schema_of
from tests.page.site import Site

pytestmark = pytest.mark.slow

cases = pytest.mark.parametrize("case", ZOO.values(), ids=ZOO)


def validated(case: Case, form: Locator) -> Any:
    told = read(form.page)
    assert "errors" not in told, told
    return TypeAdapter(case.type).validate_json(json.dumps(told.get("value")))


@cases
def test_a_form_filled_in_by_its_labels_gives_a_value_of_the_type(case: Case, page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(case.type))
    for step in case.steps:
        take(form, step)
    assert validated(case, form) == case.value
    assert form.get_by_role("alert").count() == 0


@cases
def test_a_form_that_starts_with_a_value_gives_it_back(case: Case, page: Page, pages: Site) -> None:
    adapter = TypeAdapter(case.type)
    given = adapter.dump_python(case.value, mode="json", round_trip=True)
    form = open_form(page, pages, schema_of(case.type), value=given)
    assert validated(case, form) == adapter.validate_python(given)


@pytest.mark.parametrize(
    "case", [case for case in ZOO.values() if case.wrong], ids=[n for n, c in ZOO.items() if c.wrong]
)
def test_what_does_not_fit_is_said_beside_its_field_which_gets_the_focus(case: Case, page: Page, pages: Site) -> None:
    for wrong in case.wrong:
        form = open_form(page, pages, schema_of(case.type))
        for step in wrong.steps:
            take(form, step)
        assert read(page)["errors"]
        field = place(form, wrong.field)
        expect(field).to_have_accessible_description(re.compile(re.escape(wrong.message)))
        alert = form.get_by_role("alert").filter(has_text=wrong.message)
        expect(alert.first).to_be_visible()
        assert field.evaluate("(field) => field.contains(document.activeElement)")
