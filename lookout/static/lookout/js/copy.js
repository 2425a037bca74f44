// Copy what a button names ([data-copy]). The buttons are shown only where copying works.

if (navigator.clipboard) {
  document.documentElement.classList.add("can-copy");
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    const word = button.querySelector("[data-word]");
    const before = word.textContent;
    word.textContent = "Copied";
    setTimeout(() => (word.textContent = before), 1500);
  });
}
