// Searches a built site as its page does: node search.js FOLDER QUERY… prints the page that each query finds first.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [folder, ...queries] = process.argv.slice(2);
const nothing = () => null, statics = path.join(folder, "_static");
const page = {
  console, _: (text) => text, _ready() {}, Documentation: { ngettext: (text) => text },
  SPHINX_HIGHLIGHT_ENABLED: false, localStorage: { setItem() {} },
  DOCUMENTATION_OPTIONS: { URL_ROOT: "", BUILDER: "html" },
  document: { addEventListener() {}, documentElement: { dataset: {} }, getElementById: nothing, querySelector: nothing,
    querySelectorAll: () => [] },
};
page.window = page;
vm.createContext(page);
const stemmers = fs.readdirSync(statics).filter((name) => /stemmer/.test(name)).sort();
for (const name of [...stemmers, "language_data.js", "searchtools.js", "../searchindex.js"])
  vm.runInContext(fs.readFileSync(path.join(statics, name), "utf8"), page);
for (const query of queries) {
  page.query = query;
  const found = vm.runInContext("Search._performSearch(...Search._parseQuery(query))", page);
  console.log(found.length ? found[found.length - 1][0] : "nothing");
}
