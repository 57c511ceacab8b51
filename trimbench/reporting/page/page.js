"use strict";
const value = (row, column) => {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  const number = Number(text);
  return text !== "" && Number.isFinite(number) ? number : text;
};
const compare = (one, other) => {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one === "number") return -1; // numbers before words
  if (typeof other === "number") return 1;
  return one.localeCompare(other, undefined, { numeric: true });
};
const sort = (head) => {
  const table = head.closest("table");
  const rising = head.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [value(row, head.cellIndex), row]);
  rows.sort(([one], [other]) => (rising ? compare(one, other) : compare(other, one)));
  body.append(...rows.map(([, row]) => row));
};
for (const head of document.querySelectorAll(".sortable th")) {
  head.tabIndex = 0;
  head.addEventListener("click", () => sort(head));
  head.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      sort(head);
    }
  });
}
const filter = (name) => {
  const controls = [...document.querySelectorAll("input[data-filters]")].filter((c) => c.dataset.filters === name);
  const words = controls.filter((c) => c.type === "search").flatMap((c) => c.value.toLowerCase().split(/\s+/).filter(Boolean));
  const hidden = new Set(controls.filter((c) => c.type === "checkbox" && !c.checked).map((c) => c.dataset.verdict));
  const rows = [...document.getElementById(name).tBodies[0].rows];
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = hidden.has(row.dataset.verdict) || !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  for (const count of document.querySelectorAll("[data-counts]")) {
    if (count.dataset.counts === name) count.textContent = `${shown} of ${rows.length} rows`;
  }
};
for (const control of document.querySelectorAll("input[data-filters]")) {
  control.addEventListener("input", () => filter(control.dataset.filters));
}
for (const count of document.querySelectorAll("[data-counts]")) filter(count.dataset.counts);
// A link to folded jobs opens them.
const unfold = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
};
addEventListener("hashchange", unfold);
unfold();
