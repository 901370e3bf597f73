// A click on a figure offers the address that leads to it; the form below the table does so without this.
"use strict";
for (const form of document.querySelectorAll("form.spot")) {
  const table = form.closest("section").querySelector(".scroll table");
  if (!table) continue;
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
