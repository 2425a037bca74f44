// Live regions ([data-live]): paused on request and while nobody looks; honest when the server is silent.

let paused = false;
let lost = false;

const regions = () => document.querySelectorAll("[data-live]");
const isPoll = (ctx) => ctx.sourceElement.matches("[data-live]") && ctx.sourceEvent?.type === "every";

export function refresh() {
  for (const region of regions()) region.dispatchEvent(new CustomEvent("refresh"));
}

export function togglePause() {
  paused = !paused;
  show();
  if (!paused) refresh();
}

function show() {
  for (const status of document.querySelectorAll("[data-live-status]")) {
    status.hidden = regions().length === 0;
    const word = status.querySelector(".live");
    word.classList.toggle("paused", paused || lost);
    word.textContent = paused ? "Paused" : lost ? "Lost" : "Live";
    status.querySelector("button").textContent = paused ? "Go on" : "Pause";
  }
}

function say(text) {
  lost = text !== "";
  show();
  for (const status of document.querySelectorAll("[data-live-status] .amber")) status.textContent = text;
}

document.addEventListener("htmx:before:request", (event) => {
  const { ctx } = event.detail;
  if (isPoll(ctx) && (paused || document.hidden)) event.preventDefault();
  // A scrolled list keeps its rows: the first one shown tells the server where new ones begin.
  const list = ctx.sourceElement.matches("[data-live]") && ctx.sourceElement.querySelector("[data-first]");
  if (list && list.scrollTop > 0) ctx.request.headers["Tack-First"] = list.dataset.first;
});

document.addEventListener("htmx:error", (event) => {
  if (event.detail.ctx && isPoll(event.detail.ctx)) say("Tack does not answer; this is how it was.");
});
document.addEventListener("htmx:response:error", (event) => {
  if (isPoll(event.detail.ctx)) say("Tack could not refresh this page.");
});

// A row whose mark is another one after a refresh has changed: it flashes, once.
let marks = new Map();
document.addEventListener("htmx:before:swap", () => {
  marks = new Map([...document.querySelectorAll("[data-mark]")].map((row) => [row.id, row.dataset.mark]));
});
document.addEventListener("htmx:after:swap", (event) => {
  if (!event.detail.ctx || event.detail.ctx.response?.status < 400) say("");
  show();
  for (const row of document.querySelectorAll("[data-mark]")) {
    if (marks.has(row.id) && marks.get(row.id) !== row.dataset.mark) row.classList.add("changed");
  }
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-pause]")) togglePause();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !paused) refresh();
});
show();
