// Theme, row height and keys take effect when chosen; without script the form's button does it.

document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-choices]");
  if (!form) return;
  const { theme, density, keys } = Object.fromEntries(new FormData(form));
  const page = document.documentElement.dataset;
  for (const [name, value] of Object.entries({ theme, density, keys })) {
    if (value) page[name] = value;
    else delete page[name];
  }
  fetch(form.action, { method: "POST", body: new FormData(form), redirect: "manual" });
});
