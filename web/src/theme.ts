/** Colours of the style sheet as canvases need them, and when they change. */

const NAMES = ["ink", "muted", "faint", "line", "surface", "agrees", "explained", "unmatched", "inherited", "differs", "origin",
  "passes", "heat0", "heat1", "heat2", "accent"] as const;
export type Colour = (typeof NAMES)[number];
export type Palette = Record<Colour, string>;
type Theme = "" | "light" | "dark";

const listeners = new Set<() => void>();
let known: Palette | null = null;

/** The colours as they are now: custom properties are read through an element, which resolves them. */
export function palette(): Palette {
  if (known) return known;
  const probe = document.body.appendChild(document.createElement("i"));
  const colours = {} as Palette;
  for (const name of NAMES) {
    probe.style.color = `var(--${name})`;
    colours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return (known = colours);
}

/** Call back at once whenever colours change: for paper that is before the page is printed. */
export function onThemeChange(callback: () => void): () => void {
  listeners.add(callback);
  return () => listeners.delete(callback);
}

export function setTheme(theme: Theme): void {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  known = null;
  for (const listener of listeners) listener();
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Follow the system's colours, and print in light ones. */
export function watchTheme(): void {
  const chosen = (): Theme => (document.documentElement.dataset.theme ?? "") as Theme;
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    matchMedia(query).addEventListener("change", () => setTheme(chosen()));
  }
  let before: Theme = "";
  addEventListener("beforeprint", () => (before = chosen(), setTheme("light")));
  addEventListener("afterprint", () => setTheme(before));
}
