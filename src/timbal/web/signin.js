// The place that the address leads to is kept over signing in.

const form = document.querySelector("form");
if (form) form.action += location.hash;
