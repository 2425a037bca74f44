// A problem's line ([data-line]) leads to that line of the document it was found in.

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-line]");
  const text = link && document.getElementById("text");
  if (!text) return;
  event.preventDefault();
  const lines = text.value.split("\n");
  const before = lines.slice(0, link.dataset.line - 1).join("\n").length;
  const start = link.dataset.line > 1 ? before + 1 : 0;
  text.focus();
  text.setSelectionRange(start, start + (lines[link.dataset.line - 1] ?? "").length);
});
