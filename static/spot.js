// Copies a table. And a click on a figure offers the address that leads to it, as the form below does anyway.
"use strict";
for (const form of document.querySelectorAll("form.spot")) {
  const table = form.closest("section").querySelector(".scroll table");
  if (!table) continue;
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "quiet copy";
  copy.textContent = form.dataset.copy;
  copy.setAttribute("aria-live", "polite");
  copy.addEventListener("click", () => {
    const chosen = getSelection();
    // What is folded away isn't drawn, and what isn't drawn isn't copied.
    const folded = table.closest("details:not([open])");
    if (folded) folded.open = true;
    chosen.selectAllChildren(table);
    // The only way that also works without HTTPS; spreadsheets take the cells, texts take tabs.
    const done = document.execCommand("copy");
    chosen.removeAllRanges();
    if (folded) folded.open = false;
    if (done) copy.textContent = form.dataset.copied;
    setTimeout(() => { copy.textContent = form.dataset.copy; }, 3000);
  });
  const item = document.createElement("li");
  item.append(copy);
  form.closest("section").querySelector(".downloads").append(item);
  const [row, column] = form.querySelectorAll("input[type=number]");
  const link = document.createElement("a");
  link.className = "spotlink";
  link.rel = "nofollow";
  link.textContent = form.dataset.link;
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("tbody td");
    if (!cell || event.target.closest("a") || !getSelection().isCollapsed) return;
    const rows = [...table.querySelectorAll("tbody tr:not(.group)")];
    row.value = rows.indexOf(cell.parentElement) + Number(form.dataset.row);
    column.value = cell.cellIndex - 1 + Number(form.dataset.column);
    link.href = `${form.action}?${new URLSearchParams(new FormData(form))}`;
    cell.append(link);
  });
}
