/** The page's index, and its columns: decoded when they are asked for, once. The format is in docs/report_page_design.md. */

export interface Column { type: "u8" | "u16" | "u32" | "f32" | "json"; length: number; chunks: string[]; transform?: string; dictionary?: string }

export interface Origin { call: number | null; row: number | null; kind: string; reason: string; details: string[]; site: string; command: string }

/** What `msprobe prove` found of a call: entries that it is about, which side is wrong, and how that was found. */
export interface Proof { calls: string[]; answer: string; sentence: string; details: string[] }

/** What the script reads of a page's index. */
export interface Index {
  format: number;
  kind: "comparison" | "dump" | "ranks";
  mode: "statistics" | "md5" | "tensor";
  columns: Record<string, Column>;
  origins: Origin[];
  tolerated: string[];
  truncated: { rows: number; command: string } | null;
  metrics?: { name: string; title: string; column: string }[];
  /** The command that proves a call, but for its name; "" where none does. */
  prove?: string;
  proofs?: Proof[];
}

export interface Picture {
  row: number;
  shape: number[]; where?: string;
  map?: { rows: number; columns: number; data: string; low: number; high: number; of: string };
  scatter?: { size: number; data: string; low: number; high: number; linear: number } | null;
  histograms?: { target: number[]; golden: number[]; low: number; high: number; linear: number } | null;
  worst?: [number[], string, string][];
}

export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float32Array;

/** The bits of a float that stand for no number; any other NaN is NaN. */
export const NO_NUMBER = 0x7fc00001;

export function fromBase64(text: string): Uint8Array {
  const decode = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  return decode ? decode(text) : Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** Undo the shuffle: all first bytes, then all second ones, become numbers of so many bytes. */
export function unshuffle(bytes: Uint8Array, size: number): Uint8Array {
  if (size === 1) return bytes;
  const count = bytes.length / size;
  const numbers = new Uint8Array(bytes.length);
  for (let byte = 0; byte < size; byte++) {
    const from = byte * count;
    for (let i = 0, to = byte; i < count; i++, to += size) numbers[to] = bytes[from + i];
  }
  return numbers;
}

/** Undo differences of neighbours, in place and modulo the type's size. */
export function undelta(numbers: Numbers): void {
  for (let i = 1; i < numbers.length; i++) numbers[i] += numbers[i - 1];
}

const KINDS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array } as const;

export class Columns {
  private readonly decoded = new Map<string, Promise<unknown>>();
  private readonly columns: Map<string, Column>;

  /** ``text`` gives what the element of an id holds. */
  constructor(columns: Record<string, Column>, private readonly text: (id: string) => string) {
    this.columns = new Map(Object.entries(columns));
  }

  has(name: string): boolean {
    return this.columns.has(name);
  }

  json<T>(name: string): Promise<T[]> {
    return this.once(name, async ({ chunks }) => JSON.parse(new TextDecoder().decode(await this.unpacked(chunks[0]))) as T[]);
  }

  /** The texts of a column of codes. */
  dictionary<T = string>(name: string): Promise<T[]> {
    const dictionary = this.columns.get(name)?.dictionary;
    return dictionary === undefined ? Promise.resolve([]) : this.json<T>(dictionary);
  }

  numbers<T extends Numbers = Uint8Array | Uint16Array | Uint32Array>(name: string): Promise<T> {
    return this.once(name, async (column) => {
      const kind = KINDS[column.type as keyof typeof KINDS];
      const all = new kind(column.length);
      const chunks = await Promise.all(column.chunks.map((id) => this.unpacked(id)));
      let place = 0;
      for (const chunk of chunks) {
        const bytes = unshuffle(chunk, kind.BYTES_PER_ELEMENT);
        const part = new kind(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length / kind.BYTES_PER_ELEMENT);
        if (column.transform === "delta") undelta(part);
        all.set(part, place);
        place += part.length;
      }
      if (place !== column.length) throw new Error(`column ${name} has ${place} numbers, not ${column.length}`);
      if (column.transform?.startsWith("xor:")) {
        const other = bits(await this.numbers<Float32Array>(column.transform.slice(4)));
        const own = bits(all as Float32Array);
        for (let i = 0; i < own.length; i++) own[i] ^= other[i];
      }
      return all as Numbers as T;
    });
  }

  private async unpacked(id: string): Promise<Uint8Array> {
    const stream = new Blob([fromBase64(this.text(id)) as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  private once<T>(name: string, decode: (column: Column) => Promise<T>): Promise<T> {
    const column = this.columns.get(name);
    if (!this.decoded.has(name)) this.decoded.set(name, column ? decode(column) : Promise.reject(new Error(`the page has no column ${name}`)));
    return this.decoded.get(name) as Promise<T>;
  }
}

/** Of the numbers 0 to ``count`` those with the largest scores, the largest first; none whose score is NaN. */
export function largest(count: number, most: number, score: (number: number) => number): number[] {
  const best: number[] = [], scores: number[] = [];
  for (let number = 0; number < count; number++) {
    const own = score(number);
    if (Number.isNaN(own) || (best.length === most && own <= scores[most - 1])) continue;
    let place = best.length;
    while (place > 0 && scores[place - 1] < own) place--;
    best.splice(place, 0, number);
    scores.splice(place, 0, own);
    best.length = scores.length = Math.min(best.length, most);
  }
  return best;
}

/** The place of a number in an ascending list; -1 where it has none. */
export function placeIn(numbers: ArrayLike<number>, wanted: number): number {
  let low = 0, high = numbers.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] === wanted) return middle;
    if (numbers[middle] < wanted) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** The same memory as whole numbers: only so is "no number" told from NaN. */
export function bits(floats: Float32Array): Uint32Array {
  return new Uint32Array(floats.buffer, floats.byteOffset, floats.length);
}
