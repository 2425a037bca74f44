// Line numbers beside a document that is being written ([data-numbers] names its field), in step with it.

for (const numbers of document.querySelectorAll("[data-numbers]")) {
  const text = document.getElementById(numbers.dataset.numbers);
  const follow = () => {
    numbers.scrollTop = text.scrollTop;
  };
  const count = () => {
    const lines = text.value.split("\n").length;
    numbers.textContent = Array.from({ length: lines }, (_, place) => place + 1).join("\n") + "\n\n";
    follow();
  };
  numbers.hidden = false;
  text.addEventListener("input", count);
  text.addEventListener("scroll", follow);
  count();
}
