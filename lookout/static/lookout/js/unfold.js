// What is unfolded stands in the address (?open=…), so that a refresh, a reload and a link keep it open.

document.addEventListener(
  "toggle",
  (event) => {
    const name = event.target.dataset?.open;
    if (!name) return;
    const address = new URL(location.href);
    const open = new Set(address.searchParams.getAll("open"));
    if (open.has(name) === event.target.open) return;
    if (event.target.open) open.add(name);
    else open.delete(name);
    address.searchParams.delete("open");
    for (const each of open) address.searchParams.append("open", each);
    history.replaceState(history.state, "", address);
    // An answer on its way was drawn for the old address.
    event.target.closest("[data-live]")?.dispatchEvent(new CustomEvent("htmx:abort"));
  },
  true,
);
