// The forms for choosing members work without this; here it finds, ticks and unticks many at once.
"use strict";
/** Members of a list that an eye takes in without searching. */
const FEW = 8;
for (const part of document.querySelectorAll(".arrange fieldset")) {
  const ticks = part.querySelector(".ticks");
  if (!ticks) continue;
  const words = document.querySelector(".arrange").dataset;
  const boxes = [...ticks.querySelectorAll("input")];
  const which = part.querySelector("select[name^='which.']");
  const place = part.querySelector("select[name^='place.']");
  const number = part.querySelector(".chosen");
  const byHand = () => {
    const ticked = boxes.filter((box) => box.checked).length;
    if (number) number.textContent = ticked ? `(${ticked})` : "";
    if (which) which.value = "ticked";
    // Members of what isn't used anywhere would say nothing.
    else if (place && !place.value && boxes.some((box) => box.checked)) place.value = "rows";
  };
  ticks.addEventListener("change", byHand);

  const visible = () => boxes.filter((box) => !box.parentElement.hidden);
  const bar = document.createElement("p");
  bar.className = "bar";
  // The site itself searches lists that are too long for a page.
  const long = part.querySelector("input[type=search]");
  const find = document.createElement("input");
  find.type = "search";
  find.placeholder = words.find;
  find.setAttribute("aria-label", `${words.find}: ${part.querySelector("legend").textContent}`);
  const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  find.addEventListener("input", () => {
    const wanted = plain(find.value.trim());
    for (const box of boxes) box.parentElement.hidden = !plain(box.parentElement.textContent).includes(wanted);
  });
  find.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  if (!long && boxes.length > FEW) bar.append(find);
  for (const [text, checked] of [[words.all, true], [words.none, false]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = text;
    button.addEventListener("click", () => {
      for (const box of visible()) box.checked = checked;
      byHand();
    });
    bar.append(button);
  }
  if (which || boxes.length > FEW) ticks.before(bar);
}
