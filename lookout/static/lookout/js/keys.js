// The keyboard: / search, j k row, Enter open, o unfold, f filter, g then a place, r refresh, p pause, ? this list.
// Single letters work outside fields only, and not at all when the person switched them off.
import { refresh, togglePause } from "./live.js";

const PLACES = { j: "/jobs", p: "/policies", q: "/queues", l: "/fleet" };
let going = 0;

let last = "";

const rows = () => [...document.querySelectorAll("[data-rows] > tr[id]")];
const current = (all) => all.findIndex((row) => row.contains(document.activeElement));

// The current row is the one whose link has the focus, so that a refresh keeps it and Enter opens it.
function move(step) {
  const all = rows();
  if (!all.length) return;
  let place = current(all);
  if (place < 0) place = all.findIndex((row) => row.id === last);
  const next = all[Math.min(all.length - 1, Math.max(0, place + step))];
  last = next.id;
  next.querySelector("a[data-row]").focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function unfold() {
  const fold = document.activeElement?.closest("li, section")?.querySelector("details.unfold");
  const first = fold ?? document.querySelector("details.unfold");
  if (first) first.open = !first.open;
}

const ACTIONS = {
  "/": () => document.getElementById("find")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  o: unfold,
  f: () => {
    const menu = document.querySelector("[data-filter]");
    if (menu) {
      menu.open = true;
      menu.querySelector("select, input")?.focus();
    }
  },
  g: () => (going = Date.now()),
  r: refresh,
  p: togglePause,
  "?": () => document.getElementById("keys")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog:modal")) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.documentElement.dataset.keys === "off" && event.key.length === 1) return;
  if (Date.now() - going < 1500 && PLACES[event.key]) {
    location.assign(PLACES[event.key]);
    return;
  }
  const act = ACTIONS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
