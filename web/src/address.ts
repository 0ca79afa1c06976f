/** The state of the page in its address, so that a link shows what its sender saw. */

import { t } from "./texts.ts";

const TEXTS = ["node", "q", "tab", "colour", "view"] as const;

export interface Address extends Record<(typeof TEXTS)[number], string> {
  x: [number, number] | null;
}

export const NOWHERE: Address = { node: "", x: null, q: "", tab: "", colour: "", view: "" };

/** Read ``#node=…&x=…``; ``note`` says what was not understood. */
export function parseAddress(hash: string): { address: Address; note: string } {
  const address = { ...NOWHERE };
  const ignored: string[] = [];
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const [key] = part.split("=", 1);
    const value = part === key ? null : decoded(part.slice(key.length + 1));
    const range = key === "x" && /^(\d{1,9})-(\d{1,9})$/.exec(value ?? "");
    const text = TEXTS.find((each) => each === key);
    if (text && value !== null) address[text] = value;
    else if (range && Number(range[1]) < Number(range[2])) address.x = [Number(range[1]), Number(range[2])];
    else ignored.push(key);
  }
  const note = ignored.length ? t("The address has parts that mean nothing here: {parts}.", { parts: ignored.join(", ").slice(0, 200) }) : "";
  return { address, note };
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

export function formatAddress(address: Address): string {
  const parts = TEXTS.filter((key) => address[key]).map((key) => `${key}=${encoded(address[key])}`);
  if (address.x) parts.push(`x=${address.x.join("-")}`);
  return parts.length ? `#${parts.join("&")}` : "";
}

function encoded(text: string): string {
  // Half of a surrogate pair cannot be written in an address.
  return encodeURIComponent(text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd"));
}

/** Show an address without a new entry in the history, where the page may do so. */
export function writeAddress(hash: string): void {
  if (location.hash === hash || (!hash && !location.hash)) return;
  // In a frame of srcdoc, replace would leave the page: its address is resolved by the parent's.
  if (location.protocol === "about:") location.hash = hash;
  else location.replace(`${location.href.split("#")[0]}${hash || "#"}`);
}
