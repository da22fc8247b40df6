"""A page with one form, and a person who fills it in: by labels, as they are read."""

import json
import re
from typing import Any

from playwright.sync_api import Locator, Page

from tests.page.forms.zoo import Step
from tests.page.site import Site

SCRIPT = """
import "/web/form.js";
const exact = (key, value, { source }) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) ? JSON.rawJSON(source) : value;
window.show = (properties) => {
  const drafts = (window.drafts = []);
  const form = Object.assign(document.createElement("timbal-form"), JSON.parse(properties, exact));
  form.addEventListener("change", (event) => drafts.push(event.detail.value));
  document.querySelector("main").replaceChildren(form);
  return form.updateComplete.then(() => undefined);
};
window.read = () => JSON.stringify(document.querySelector("timbal-form").read());
"""
HTML = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>A form</title>
<link rel="stylesheet" href="/web/base.css"><link rel="stylesheet" href="/web/form.css">
<script type="module" src="/script.js"></script>
</head>
<body><h1>A form</h1><main></main></body>
</html>
"""


def open_form(page: Page, pages: Site, schema: Any, **properties: Any) -> Locator:
    """The form of a schema, on a page of its own."""
    if page.url != f"{pages.url}/":
        pages.files |= {"/": HTML, "/script.js": SCRIPT}
        page.goto(pages.url)
        page.wait_for_function("'show' in window")
    page.evaluate("(properties) => show(properties)", json.dumps({"schema": schema, **properties}))
    return page.get_by_role("main")


def read(page: Page) -> dict[str, Any]:
    """What the form gives: the value, or the errors, which it shows."""
    told: dict[str, Any] = json.loads(page.evaluate("read()"))
    return told


def named(label: str) -> re.Pattern[str]:
    """Its accessible name: with what is said about it in brackets, or without."""
    return re.compile(rf"^\s*{re.escape(label)}(\s\((optional|deprecated)\))*\s*$")


def place(form: Locator, path: str) -> Locator:
    """The field, or the group of fields, at a path of labels."""
    *groups, label = path.split(" > ")
    for group in groups:
        form = form.get_by_role("group", name=named(group))
    radios = form.get_by_role("radiogroup", name=named(label))
    field = form.get_by_label(named(label)).and_(form.locator("input, select, textarea"))
    if radios.count():
        return radios
    return field if field.count() else form.get_by_role("group", name=named(label))


def take(form: Locator, step: Step) -> None:
    """Press a button, or fill in a field."""
    if isinstance(step, str):
        form.get_by_role("button", name=step, exact=True).click()
        return
    path, value = step
    field = place(form, path)
    if isinstance(value, bool):
        field.set_checked(value)
    elif field.get_attribute("role") == "radiogroup":
        field.get_by_label(value, exact=True).check()
    elif field.evaluate("(field) => field.localName") == "select":
        field.select_option(label=value)
    else:
        field.fill(value)
