// Runs the search worker of a built documentation outside a browser: node search.mjs SITE QUESTION...
// Prints one JSON list of locations for each question, the best first.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const [site, ...questions] = process.argv.slice(2);
const workers = join(site, "assets/javascripts/workers");
const worker = readdirSync(workers).find((name) => /^search\..*\.js$/.test(name));

let handle;
let answer;
globalThis.self = globalThis;
globalThis.addEventListener = (_type, handler) => { handle = handler; };
globalThis.postMessage = (message) => { answer = message; };
(0, eval)(readFileSync(join(workers, worker), "utf8"));

const SETUP = 0;
const QUERY = 2;
const { config, docs } = JSON.parse(readFileSync(join(site, "search/search_index.json"), "utf8"));
await handle({ data: { type: SETUP, data: { config, docs, options: { suggest: false } } } });
for (const question of questions) {
  await handle({ data: { type: QUERY, data: question } });
  console.log(JSON.stringify(answer.data.items.map((sections) => sections[0].location)));
}
