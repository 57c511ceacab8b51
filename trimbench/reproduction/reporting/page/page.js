"use strict";
const value = (row, column) => {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  const number = Number(text);
  return text !== "" && Number.isFinite(number) ? number : text;
};
const compare = (one, other, rising) => {
  if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1; // numbers before words, in both directions
  const order = typeof one === "number" ? one - other : one.localeCompare(other, undefined, { numeric: true });
  return rising ? order : -order;
};
const sort = (head) => {
  const table = head.closest("table");
  const rising = head.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [value(row, head.cellIndex), row]);
  rows.sort(([one], [other]) => compare(one, other, rising));
  body.append(...rows.map(([, row]) => row));
};
// What an address such as #numbers leads to; names in it are percent-encoded, if whoever typed it knew how.
const targetOf = (hash) => {
  try {
    return document.getElementById(decodeURIComponent(hash.slice(1)));
  } catch {
    return null;
  }
};
const makeSortable = (head) => {
  head.tabIndex = 0;
  head.addEventListener("click", () => sort(head));
  head.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      sort(head);
    }
  });
};
// Lists of jobs that show only the rows behind one number.
const chosen = new Map();
const filter = (name) => {
  const controls = controlsOf(name);
  const words = controls.filter((c) => c.type === "search").flatMap((c) => c.value.toLowerCase().split(/\s+/).filter(Boolean));
  const hidden = new Set(controls.filter((c) => c.type === "checkbox" && !c.checked).map((c) => c.dataset.verdict));
  const only = chosen.get(name);
  const rows = [...document.getElementById(name).tBodies[0].rows];
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = (only && !only.has(Number(row.dataset.place))) || hidden.has(row.dataset.verdict) || !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  for (const count of document.querySelectorAll("[data-counts]")) {
    if (count.dataset.counts === name) count.textContent = `${shown} of ${rows.length} ${rows.length === 1 ? "row" : "rows"}`;
  }
};
// On a phone each cell says which column it belongs to.
const label = (table) => {
  const names = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, place) => (cell.dataset.label = names[place]));
};
// There may be thousands of jobs: their list is built when it is first opened.
const fill = (details) => {
  const table = details.querySelector("table");
  if (table.tBodies[0].rows.length) return;
  const { length, columns } = JSON.parse(details.querySelector("script").textContent);
  const content = ({ of, at }, place) => (at.length ? of[at[place]] : of.length === 1 ? of[0] : of[place]);
  const numeric = columns.map(({ of }) => of.every((one) => one === null || typeof one === "number"));
  columns.forEach(({ name }, place) => {
    const head = document.createElement("th");
    head.textContent = name.replaceAll("_", " ");
    head.classList.toggle("number", numeric[place]);
    makeSortable(head);
    table.tHead.rows[0].append(head);
  });
  const made = Array.from({ length }, (_, place) => {
    const row = document.createElement("tr");
    row.dataset.place = place;
    columns.forEach((column, number) => {
      const cell = row.insertCell();
      cell.classList.toggle("number", numeric[number]);
      cell.textContent = content(column, place) ?? "–";
    });
    return row;
  });
  table.tBodies[0].append(...made);
  label(table);
  filter(table.id);
};
const choose = (details, places, number) => {
  const table = details.querySelector("table");
  if (places) chosen.set(table.id, places);
  else chosen.delete(table.id);
  const behind = details.querySelector(".behind");
  behind.hidden = !places;
  behind.querySelector("b").textContent = number;
  fill(details);
  filter(table.id);
};
const ranges = (text) =>
  new Set(
    text.split(" ").flatMap((range) => {
      const [first, last = first] = range.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, step) => first + step);
    }),
  );
const controlsOf = (name) => [...document.querySelectorAll("input[data-filters]")].filter((c) => c.dataset.filters === name);
const showAll = (name) => {
  for (const control of controlsOf(name)) {
    if (control.type === "search") control.value = "";
    else control.checked = true;
  }
  filter(name);
};
// Tables that are wider than their box say that there is more to see.
const sized = new ResizeObserver(() => {
  for (const box of document.querySelectorAll(".scroll")) box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
});
for (const box of document.querySelectorAll(".scroll")) for (const one of [box, box.firstElementChild]) sized.observe(one);
document.querySelectorAll(".sortable th").forEach(makeSortable);
document.querySelectorAll(".cards").forEach(label);
for (const control of document.querySelectorAll("input[data-filters]")) {
  control.addEventListener("input", () => filter(control.dataset.filters));
}
for (const count of document.querySelectorAll("[data-counts]")) filter(count.dataset.counts);
for (const details of document.querySelectorAll("details.jobs")) {
  details.addEventListener("toggle", () => fill(details));
  details.querySelector("button").addEventListener("click", () => choose(details, null, ""));
}
for (const link of document.querySelectorAll("a[data-jobs]")) {
  link.addEventListener("click", () => choose(targetOf(link.hash), ranges(link.dataset.jobs), link.dataset.number));
}
// A link unfolds what it leads to, and shows a row even if it is filtered away.
const reveal = (hash) => {
  const target = targetOf(hash);
  if (!target) return;
  if (target.matches("tr[hidden]")) showAll(target.closest("table").id);
  for (let part = target; (part = part.closest("details")); part = part.parentElement) part.open = true;
  target.scrollIntoView();
};
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (link) reveal(link.hash);
});
addEventListener("hashchange", () => reveal(location.hash));
reveal(location.hash);
