/** Start the page: decode, render; where that cannot be, say why below the verdict, which reads without us. */

import { type ComponentChildren, render } from "preact";
import { useEffect } from "preact/hooks";
import { App } from "./app.tsx";
import { Columns, type Index } from "./data.ts";
import { loadModel } from "./model.ts";
import { Ranks, type RanksIndex } from "./ranks.tsx";
import { watchTheme } from "./theme.ts";
import { t } from "./texts.ts";

function tell(text: string): void {
  const note = document.createElement("p");
  note.className = "note";
  note.setAttribute("role", "status");
  note.textContent = text;
  document.getElementById("app")?.append(note);
}

/** Say that the page can be used: once its listeners are there, which is after it was first drawn. */
function Ready({ children }: { children: ComponentChildren }) {
  // In milliseconds since the page was asked for.
  useEffect(() => void (document.documentElement.dataset.ready = String(Math.ceil(performance.now()))), []);
  return <>{children}</>;
}

async function start(): Promise<void> {
  const app = document.getElementById("app")!;
  const index = JSON.parse(document.getElementById("index")!.textContent!) as Index;
  if (index.format !== 1) return tell(t("This page has format {format}, its script knows 1.", { format: index.format }));
  if (typeof DecompressionStream === "undefined") {
    return tell(t("This browser is too old for the plot and the table: use Chrome 80, Firefox 113, Safari 16.4 or later."));
  }
  const columns = new Columns(index.columns, (id) => document.getElementById(id)?.textContent ?? "");
  watchTheme();
  const page = index.kind === "ranks" ? <Ranks index={index as RanksIndex} columns={columns} /> : <App model={await loadModel(index, columns)} />;
  render(<Ready>{page}</Ready>, app);
  return undefined;
}

start().catch((error: unknown) => tell(t("The plot and the table cannot be shown: {error}", { error: error instanceof Error ? error.message : String(error) })));
