// Sorting and filtering of the list of answers. Without it the page shows the first ones.
"use strict";
// What is folded is printed, too, but for the long list of what was chosen.
const folded = [...document.querySelectorAll("details:not(.long)")];
addEventListener("beforeprint", () => folded.forEach((each) => {
  each.dataset.open = each.open;
  each.open = true;
}));
addEventListener("afterprint", () => folded.forEach((each) => {
  each.open = each.dataset.open === "true";
}));
for (const holder of document.querySelectorAll("[data-answers]")) {
  const rows = JSON.parse(document.getElementById(holder.dataset.answers).textContent);
  const body = holder.querySelector("tbody");
  const told = holder.querySelector("[role=status]");
  const search = holder.querySelector("input");
  const heads = [...holder.querySelectorAll("thead th")];
  const more = holder.querySelector("p button");
  const step = 50;
  let most = step;
  let column = 0;
  let down = true;
  let sorted = false;

  function show() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => wanted.every((w) => row[0].toLowerCase().includes(w)));
    if (sorted) {
      const words = new Intl.Collator(undefined, { numeric: true }).compare;
      const number = (row) => (row[column] === "" ? -1 : Number(row[column]));
      const compare = (a, b) => (column ? number(a) - number(b) : words(a[0], b[0]));
      found.sort((a, b) => (down ? -1 : 1) * compare(a, b));
    }
    body.replaceChildren(...found.slice(0, most).map((row) => {
      const line = document.createElement("tr");
      row.forEach((value, place) => {
        const cell = document.createElement(place ? "td" : "th");
        if (!place) cell.scope = "row";
        cell.textContent = value;
        line.append(cell);
      });
      return line;
    }));
    const shown = Math.min(most, found.length);
    told.textContent = `${shown.toLocaleString("en")} of ${found.length.toLocaleString("en")} shown`;
    more.closest("p").hidden = shown === found.length;
  }

  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      down = sorted && column === place ? !down : place > 0;
      column = place;
      sorted = true;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      show();
    });
  });
  search.closest("p").hidden = false;
  search.addEventListener("input", () => { most = step; show(); });
  more.addEventListener("click", () => { most += 4 * step; show(); });
  show();
}
