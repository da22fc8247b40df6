"""How a form behaves while a person fills it in, and when the server says no."""

import datetime as dt
import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.checks import check_accessibility, check_snapshot
from tests.page.forms.filling import open_form, place, read, take
from tests.page.forms.zoo import Address, Basket, Everything, Open, Options, Order, Purchase, Sheet, Tree, schema_of
from tests.page.site import Site

pytestmark = pytest.mark.slow

FORM = "document.querySelector('timbal-form')"
LIMITED = {"type": "string", "title": "Code", "minLength": 3}
HOSTILE = {
    "a script": "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "a template": "${alert(1)}{{alert(2)}}",
    "bidi marks": "\u202eabc\u202c \u2067def",
    "zero width": "a\u200bb\u200d\ufeffc",
    "quotes": "\"'`></textarea></select>",
}

ODD = {
    "another type": (
        {"type": "object", "properties": {"a": {"type": "integer"}}, "title": "T"},
        [1, 2],
        "must be an object",
    ),
    "no option": ({"enum": ["a", "b"], "title": "T"}, "c", "must be one of a, b"),
    "no branch": ({"anyOf": [{"type": "integer"}, {"type": "boolean"}], "title": "T"}, {"a": 1}, ""),
    "a text for a list": ({"type": "array", "items": {}, "title": "T"}, "a", "must be a list"),
    "microseconds": ({"type": "string", "format": "date-time", "title": "T"}, "2026-01-02T03:04:05.678901+05:30", ""),
    "words for a date": ({"type": "string", "format": "date", "title": "T"}, "tomorrow", ""),
    "lines": ({"type": "string", "title": "T"}, "a\nb", ""),
    "no schema at all": (True, {"a": 1}, ""),
    "a reference to nowhere": ({"$ref": "#/$defs/Gone", "title": "T"}, 5, ""),
    "a reference to itself": ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}, "title": "T"}, 5, ""),
}


def set_property(page: Page, name: str, value: Any) -> None:
    page.evaluate(f"([name, value]) => {{ {FORM}[name] = value; return {FORM}.updateComplete }}", [name, value])


def refuse(page: Page, **errors: str) -> None:
    """The server says this of these places, which are given as JSON pointers."""
    told = [{"pointer": pointer, "message": message} for pointer, message in errors.items()]
    page.evaluate(f"(errors) => {FORM}.refuse(errors)", told)


def test_a_field_is_not_judged_while_it_is_typed_for_the_first_time(page: Page, pages: Site) -> None:
    form = open_form(page, pages, LIMITED)
    field = form.get_by_label("Code")
    field.press_sequentially("ab")
    expect(form.get_by_role("alert")).to_have_count(0)
    field.press("Tab")
    expect(form.get_by_role("alert")).to_have_text("Must have at least 3 characters")
    expect(field).to_have_attribute("aria-invalid", "true")
    field.press_sequentially("c")
    expect(form.get_by_role("alert")).to_have_count(0)


def test_a_field_that_is_passed_by_is_not_judged(page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(Address))
    form.get_by_label("Street").focus()
    form.get_by_label("Zip Code").focus()
    form.get_by_label("Street").focus()
    expect(form.get_by_role("alert")).to_have_count(0)


def test_an_equal_schema_and_value_leave_alone_what_was_typed(page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(Address), value={"street": "Main"})
    form.get_by_label("Zip Code").press_sequentially("101")
    set_property(page, "schema", schema_of(Address))
    set_property(page, "value", {"street": "Main"})
    expect(form.get_by_label("Zip Code")).to_have_value("101")
    expect(form.get_by_label("Zip Code")).to_be_focused()
    set_property(page, "value", {"street": "Side"})
    expect(form.get_by_label("Street")).to_have_value("Side")
    expect(form.get_by_label("Zip Code")).to_have_value("")


def test_each_edit_tells_the_draft_once(page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(Options))
    take(form, ("Note", "a"))
    take(form, ("Loud", True))
    page.keyboard.press("Tab")
    drafts = page.evaluate("window.drafts")
    assert [(one["note"], one["loud"]) for one in drafts] == [("a", False), ("a", True)]


def test_what_the_server_says_stands_beside_its_field_until_that_is_edited(page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(Basket), value={"lines": [{"product": "Tea", "count": 1}]})
    refuse(page, **{"/lines/0/product": "is sold out", "/lines/0/colour/red": "is unknown", "": "is too dear"})
    product = form.get_by_label("Product")
    expect(product).to_have_accessible_description("Is sold out")
    expect(form.get_by_role("group", name="Line 1")).to_have_accessible_description("Is unknown")
    expect(form.get_by_role("alert")).to_have_text(["Is too dear", "Is sold out", "Is unknown"])
    product.fill("Milk")
    expect(form.get_by_role("alert")).to_have_count(0)
    assert read(page) == {"value": {"lines": [{"product": "Milk", "count": 1}]}}


def test_what_the_server_says_of_a_branch_is_found_with_its_tag_and_without(page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(Purchase), value={"payment": {"kind": "card", "number": "4242"}})
    for pointer in ("/payment/number", "/payment/card/number"):
        refuse(page, **{pointer: "is blocked"})
        expect(form.get_by_label("Number")).to_have_accessible_description("Is blocked")
        expect(form.get_by_label("Number")).to_be_focused()


def test_several_complaints_about_one_field_stand_together(page: Page, pages: Site) -> None:
    form = open_form(page, pages, LIMITED)
    page.evaluate(f"{FORM}.refuse([{{pointer: '', message: 'is old'}}, {{pointer: '/a/b', message: 'is odd'}}])")
    expect(form.get_by_label("Code")).to_have_accessible_description("Is old; is odd")


def test_a_list_is_filled_by_keyboard_and_the_focus_stays_near(page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(list[str]))
    form.get_by_role("button", name="Add to Answer").focus()
    for name in ("a", "b", "c"):
        page.keyboard.press("Enter")
        page.keyboard.type(name)
        form.get_by_role("button", name="Add to Answer").focus()
    form.get_by_role("button", name="Remove Answer 2").press("Enter")
    expect(form.get_by_label("Answer 2", exact=True)).to_be_focused()
    expect(form.get_by_label("Answer 2", exact=True)).to_have_value("c")
    for _ in range(2):
        form.get_by_role("button", name="Remove Answer 1").press("Enter")
    expect(form.get_by_role("button", name="Add to Answer")).to_be_focused()
    assert read(page) == {"value": []}


def test_radio_buttons_and_boxes_are_chosen_by_keyboard(page: Page, pages: Site) -> None:
    form = open_form(page, pages, {"enum": ["a", "b", "c"], "title": "Letter"})
    form.get_by_label("a").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert read(page) == {"value": "c"}


def test_a_part_that_is_taken_out_keeps_what_was_filled_in(page: Page, pages: Site) -> None:
    form = open_form(
        page, pages, schema_of(Order), value={"customer": "A", "ship_to": {"street": "B", "zip_code": "12345"}}
    )
    take(form, "Add Bill to")
    expect(place(form, "Bill to > Street")).to_be_focused()
    take(form, ("Bill to > Street", "C"))
    take(form, "Remove Bill to")
    assert read(page)["value"]["bill_to"] is None
    take(form, "Add Bill to")
    expect(place(form, "Bill to > Street")).to_have_value("C")


def test_another_branch_keeps_what_was_filled_in_before(page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(Purchase))
    for step in (("Kind of Payment", "Card"), ("Number", "4242"), ("Kind of Payment", "Transfer"), ("Iban", "DE")):
        take(form, step)
    assert read(page)["value"]["payment"] == {"kind": "transfer", "iban": "DE"}
    take(form, ("Kind of Payment", "Card"))
    assert read(page)["value"]["payment"] == {"kind": "card", "number": "4242"}


def test_what_the_schema_does_not_name_is_kept(page: Page, pages: Site) -> None:
    open_form(page, pages, schema_of(Open), value={"name": "a", "more": [1], "__proto__": {"b": 2}})
    assert read(page)["value"] == {"name": "a", "more": [1], "__proto__": {"b": 2}}


@pytest.mark.parametrize(("schema", "value", "refused"), ODD.values(), ids=ODD)
def test_a_value_that_no_field_can_show_is_shown_as_it_is(
    schema: Any, value: Any, refused: str, page: Page, pages: Site
) -> None:
    shown = open_form(page, pages, schema, value=value).get_by_role("textbox").input_value()
    assert shown == value or json.loads(shown) == value
    assert read(page) == ({"errors": [{"pointer": "", "message": refused}]} if refused else {"value": value})


def test_allof_and_types_in_a_list_are_understood(page: Page, pages: Site) -> None:
    named = {"type": "object", "properties": {"name": {"type": ["string", "null"]}}, "required": ["name"]}
    aged = {"properties": {"age": {"allOf": [{"$ref": "#/$defs/Age"}], "default": 3}}}
    form = open_form(page, pages, {"allOf": [named, aged], "$defs": {"Age": {"type": "integer", "minimum": 2}}})
    take(form, ("Age", "1"))
    assert read(page)["errors"] == [{"pointer": "/age", "message": "must be at least 2"}]
    take(form, ("Age", "4"))
    assert read(page) == {"value": {"name": None, "age": 4}}


def test_a_form_to_read_cannot_be_changed_and_loses_nothing(page: Page, pages: Site) -> None:
    value = {"name": "a", "parts": [{"name": "b", "parts": []}]}
    form = open_form(page, pages, schema_of(Tree), value=value, readonly=True)
    expect(form.get_by_role("button")).to_have_count(0)
    for field in form.get_by_role("textbox").all():
        expect(field).not_to_be_editable()
    assert read(page) == {"value": value}
    set_property(page, "readonly", False)
    set_property(page, "disabled", True)
    for button in form.get_by_role("button").all():
        expect(button).to_be_disabled()
    expect(form.get_by_role("textbox").first).to_be_disabled()


def test_a_part_that_the_schema_locks_cannot_be_changed(page: Page, pages: Site) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer", "readOnly": True}, "name": {"type": "string"}}}
    form = open_form(page, pages, schema, value={"id": 5, "name": "a"})
    expect(form.get_by_label("Id")).not_to_be_editable()
    expect(form.get_by_label("Name")).to_be_editable()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_shown_as_text(text: str, page: Page, pages: Site) -> None:
    part = {"title": text, "description": text, "type": "string", "default": text, "examples": [text]}
    schema = {
        "type": "object",
        "properties": {
            "a": part,
            "b": {"enum": [text, "other"], "title": "Choice"},
            "c": {"enum": [text, *"abcdef"], "title": "Select"},
            "d": {"const": text, "title": "Fixed"},
            "e": {"type": "object", "additionalProperties": {"type": "string"}, "default": {text: text}},
            text: {"type": "integer", "default": 1},
        },
        "required": ["c"],
    }
    form = open_form(page, pages, schema)
    choice = form.get_by_role("radiogroup", name="Choice").get_by_role("radio")
    choice.first.check()
    place(form, "Select").select_option(index=1)
    assert read(page)["value"] == {"a": text, "b": text, "c": text, "d": text, "e": {text: text}, text: 1}
    for path in ("/a", "/b"):
        refuse(page, **{path: text})
        expect(form.get_by_role("alert")).to_have_count(1)
        assert form.get_by_role("alert").text_content() == text[:1].upper() + text[1:]
    assert form.locator("img, script").count() == 0


def test_a_megabyte_of_text_is_shown(page: Page, pages: Site) -> None:
    text = "long " * 200_000
    part = {"type": "string", "description": text, "default": text}
    form = open_form(page, pages, {"type": "object", "properties": {"a": part, "b": {"enum": [text, "short"]}}})
    place(form, "B").get_by_label("short").check()
    place(form, "B").get_by_label("long").check()
    assert read(page) == {"value": {"a": text, "b": text}}


@pytest.mark.parametrize("kind", [Everything, Sheet, Tree, Options], ids=lambda kind: kind.__name__)
def test_axe_finds_nothing_serious(kind: Any, any_page: Page, pages: Site) -> None:
    form = open_form(any_page, pages, schema_of(kind))
    for button in form.get_by_role("button", name="Add ").all():
        button.click()
    check_accessibility(any_page)
    read(any_page)
    check_accessibility(any_page)


def test_everything_that_is_pressed_is_large_enough_for_a_finger(phone: Page, pages: Site) -> None:
    form = open_form(phone, pages, schema_of(Everything))
    take(form, "Add Bill to")
    for target in form.locator(
        "button, select, textarea, input:not([type=radio], [type=checkbox]), .form-option"
    ).all():
        box = target.bounding_box()
        assert box is not None
        assert box["height"] >= 44, target.evaluate("(target) => target.outerHTML")
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_roles_and_names_of_a_form_are_those_of_its_golden_file(page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(Everything))
    take(form, "Add to Labels")
    take(form, ("Kind of Payment", "Card"))
    read(page)
    check_snapshot(form, "form")


def test_a_date_that_is_typed_in_part_is_not_taken_for_none(page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(dt.date | None))
    form.get_by_label("Answer").focus()
    page.keyboard.type("02")
    assert read(page) == {"errors": [{"pointer": "", "message": "must be complete"}]}
    form.get_by_label("Answer").fill("2026-02-03")
    assert read(page) == {"value": "2026-02-03"}


def test_an_entry_that_may_be_none_is_filled_in_and_taken_out(page: Page, pages: Site) -> None:
    form = open_form(page, pages, schema_of(list[Address | None]))
    take(form, "Add to Answer")
    assert read(page) == {"value": [None]}
    for step in ("Add Address 1", ("Street", "Main"), ("Zip Code", "10115")):
        take(form, step)
    assert read(page) == {"value": [{"street": "Main", "zip_code": "10115"}]}
    take(form, "Remove Address 1")
    assert read(page) == {"value": []}
