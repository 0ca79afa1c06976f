/** Two stacks of frames beside each other: equal frames in one line, the others marked. */

export type Beside = [left: string | null, right: string | null];

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
  let ours: string[] = [], theirs: string[] = [];
  const flush = () => {
    for (let k = 0; k < Math.max(ours.length, theirs.length); k++) lines.push([ours[k] ?? null, theirs[k] ?? null]);
    ours = [];
    theirs = [];
  };
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      flush();
      lines.push([left[i++], right[j++]]);
    } else if (j >= right.length || (i < left.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) ours.push(left[i++]);
    else theirs.push(right[j++]);
  }
  flush();
  return lines;
}
