// A page with one table, as of a pre-check: which rows of it are shown. Without this script all are.

const table = document.querySelector<HTMLTableElement>("#filtered");
const text = document.querySelector<HTMLInputElement>("#filter");
const shown = document.querySelector<HTMLElement>("#shown");
const boxes = [...document.querySelectorAll<HTMLInputElement>("#statuses input")];

function show(): void {
  if (!table || !text || !shown) return;
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  let count = 0;
  for (const body of table.tBodies) {
    const about = body.dataset.about ?? "";
    body.hidden = !wanted.has(body.dataset.status ?? "") || !words.every((word) => about.includes(word));
    count += body.hidden ? 0 : 1;
  }
  const fields: Record<string, number> = { shown: count, all: table.tBodies.length };
  shown.textContent = (table.dataset.shown ?? "{shown} of {all}").replace(/\{(\w+)\}/g, (_, name: string) => String(fields[name]));
}

document.querySelector<HTMLElement>("#controls")?.removeAttribute("hidden");
text?.addEventListener("input", show);
boxes.forEach((box) => box.addEventListener("change", show));
show();
