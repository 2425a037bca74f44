// Questions open over the page: a link with hx-target="#dialog" brings them; without script it leads to them.

const dialog = document.getElementById("dialog");

document.addEventListener("htmx:after:swap", (event) => {
  if (event.detail.ctx?.target === dialog && !dialog.open) dialog.showModal();
});

document.addEventListener("click", (event) => {
  const closer = event.target.closest("dialog [data-close]");
  if (closer) {
    event.preventDefault();
    closer.closest("dialog").close();
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
