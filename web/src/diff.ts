/** Two stacks of frames beside each other: equal frames in one line, the others marked. */

type Beside = [left: string | null, right: string | null];

/** Align two lists by their longest common subsequence; what is left over between stands side by side. */
export function aligned(left: readonly string[], right: readonly string[]): Beside[] {
  const width = right.length + 1;
  const longest = new Uint16Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      longest[i * width + j] = left[i] === right[j] ? longest[(i + 1) * width + j + 1] + 1
        : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const lines: Beside[] = [];
  let i = 0, j = 0;
  // Where the next line of a side goes: what differs stands beside what differs.
  let ours = 0, theirs = 0;
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) ours = theirs = lines.push([left[i++], right[j++]]);
    else if (j >= right.length || (i < left.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
      lines[ours] = [left[i++], lines[ours]?.[1] ?? null];
      ours++;
    } else {
      lines[theirs] = [lines[theirs]?.[0] ?? null, right[j++]];
      theirs++;
    }
  }
  return lines;
}
