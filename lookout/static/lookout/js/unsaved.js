// A document that was changed and not sent ([data-unsaved]) is not left, or discarded, without a question.

let sending = false;

const isChanged = (form) =>
  form.dataset.unsaved === "yes" ||
  [...form.querySelectorAll("textarea, input:not([type])")].some((field) => field.value !== field.defaultValue);

document.addEventListener("submit", (event) => {
  if (event.target.matches("[data-unsaved]")) sending = true;
});

window.addEventListener("beforeunload", (event) => {
  if (!sending && [...document.querySelectorAll("form[data-unsaved]")].some(isChanged)) event.preventDefault();
});

// Back from an answer that was kept: it is a page one may leave unsent again.
window.addEventListener("pageshow", () => {
  sending = false;
});
