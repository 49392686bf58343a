// The scopes of every token of some files, by vscode-textmate: one JSON object, file -> lines ->
// [start, end, innermost scope]. Arguments: folder of node_modules, grammar, files.
"use strict";
const fs = require("fs");
const path = require("path");
const [modules, grammarPath, ...files] = process.argv.slice(2);
const oniguruma = require(path.join(modules, "vscode-oniguruma"));
const textmate = require(path.join(modules, "vscode-textmate"));

async function main() {
  await oniguruma.loadWASM(
    fs.readFileSync(path.join(modules, "vscode-oniguruma/release/onig.wasm")).buffer
  );
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () =>
      textmate.parseRawGrammar(fs.readFileSync(grammarPath, "utf8"), "grammar.json"),
  });
  const grammar = await registry.loadGrammar("source.frt");
  const found = {};
  for (const file of files) {
    let stack = textmate.INITIAL;
    found[file] = fs.readFileSync(file, "utf8").split("\n").map((line) => {
      const row = grammar.tokenizeLine(line, stack);
      stack = row.ruleStack;
      return row.tokens.map((t) => [t.startIndex, t.endIndex, t.scopes[t.scopes.length - 1]]);
    });
  }
  process.stdout.write(JSON.stringify(found));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
