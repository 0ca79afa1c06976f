// How the search weighs what it finds: as Sphinx does, with the page of frequent questions before others of the same weight,
// and where a word is in its headings (15) also before attributes of the Python interface (11 and 5).
var Scorer = {
  score: ([page, title, anchor, descr, score]) => (page.endsWith("docs/faq") || page.endsWith("docs/zh/faq") ? score + 2 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
