/** The page's texts in the language that it was written in: English in the sources, translated by what the page holds. */

const element = typeof document === "undefined" ? null : document.getElementById("texts");
const texts = new Map(Object.entries(JSON.parse(element?.textContent ?? "{}") as Record<string, string>));

/** A text in the page's language; ``{name}`` stands for one of its fields. */
export function t(text: string, fields: Record<string, string | number> = {}): string {
  return (texts.get(text) ?? text).replace(/\{(\w+)\}/g, (whole, name: string, at: number, template: string) => {
    const value = String(fields[name] ?? whole);
    return between(template.charAt(at - 1), value.charAt(0)) + value
      + between(value.charAt(value.length - 1), template.charAt(at + whole.length));
  });
}

/** What stands between a Chinese letter and one of another script, or a digit. */
function between(before: string, after: string): string {
  const chinese = /[\u4e00-\u9fff]/, word = /[A-Za-z0-9]/;
  return (chinese.test(before) && word.test(after)) || (word.test(before) && chinese.test(after)) ? " " : "";
}

/** What files name in English and is counted, chosen or shown here; ``t`` of the word finds it. */
export const NOUNS = [
  t("{count} value"), t("{count} values"), t("{count} call"), t("{count} calls"), t("{count} row"), t("{count} rows"),
  t("{count} node"), t("{count} nodes"), t("{count} step"), t("{count} steps"), t("{count} dump"), t("{count} dumps"),
  t("{count} comparison"), t("{count} comparisons"), t("{count} parameter"), t("{count} parameters"),
  t("{count} input"), t("{count} inputs"), t("{count} output"), t("{count} outputs"), t("{count} dtype"),
  t("{count} dtypes"),
  t("target"), t("golden"), t("value"), t("step"), t("dump"), t("comparison"),
  t("forward"), t("backward"), t("gradient"), t("update"),
  t("computation"), t("precision"), t("random"), t("collective"), t("drift"), t("missing gradient"), t("optimizer"),
  t("divergent"), t("consistent"), t("incomplete"), t("failed"), t("finite"), t("not finite"),
  t("right"), t("wrong"), t("undecided"), t("not here"), t("norm"), t("largest magnitude"), t("error ratio"),
  t("name"), t("cell"), t("layer"), t("automatic"), t("api"), t("data"), t("scope"), t("group"), t("unmatched"), t("elsewhere"),
];
