/** The state of the page in its address, so that a link shows what its sender saw. */

export interface Address {
  node: string;
  x: [number, number] | null;
  q: string;
  tab: string;
  colour: string;
  view: string;
}

export const NOWHERE: Address = { node: "", x: null, q: "", tab: "", colour: "", view: "" };

/** Read ``#node=…&x=…``; ``note`` says what was not understood. */
export function parseAddress(hash: string): { address: Address; note: string } {
  const address = { ...NOWHERE };
  const ignored: string[] = [];
  for (const part of hash.replace(/^#/, "").split("&")) {
    if (!part) continue;
    const equals = part.indexOf("=");
    const key = equals < 0 ? part : part.slice(0, equals);
    let value: string;
    try {
      value = decodeURIComponent(part.slice(equals + 1));
    } catch {
      ignored.push(key);
      continue;
    }
    if (equals > 0 && key === "x") {
      const range = /^(\d{1,9})-(\d{1,9})$/.exec(value);
      if (range && Number(range[1]) < Number(range[2])) address.x = [Number(range[1]), Number(range[2])];
      else ignored.push(key);
    } else if (equals > 0 && (key === "node" || key === "q" || key === "tab" || key === "colour" || key === "view")) {
      address[key] = value;
    } else ignored.push(key);
  }
  const note = ignored.length ? `The address has parts that mean nothing here: ${ignored.join(", ").slice(0, 200)}.` : "";
  return { address, note };
}

export function formatAddress(address: Address): string {
  const parts: string[] = [];
  if (address.node) parts.push(`node=${encoded(address.node)}`);
  if (address.x) parts.push(`x=${address.x[0]}-${address.x[1]}`);
  for (const key of ["q", "tab", "colour", "view"] as const) if (address[key]) parts.push(`${key}=${encoded(address[key])}`);
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
