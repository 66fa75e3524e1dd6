// What the server says, in the reader's language. The API speaks English to every program; a page knows its sentences.
import { amountTold } from "./format.js";
import { load } from "./i18n.js";

const source = document.documentElement.dataset.sentences;
/** A value ends before the next sentence begins, but a file may be called anything. */
const VALUES = { name: "(.+?)", error: "(.+?)", warning: "(.+)", span: "([a-z ]+?)" };
const VALUE = "((?:(?![.?!] [\\p{Lu}“]).)+?)";
/** Values that are words of ours. */
const WORDED = new Set(["which", "phrase", "span", "who", "pages", "what", "kind"]);
/** Where one sentence ends and the next begins. */
const END = /(?<=[.?!]) (?=[\p{Lu}“])/u;

const table = source ? Object.entries(await load(source)).map(compiled).sort((a, b) => b.weight - a.weight) : [];

function compiled([english, german]) {
  const parts = english.split(/\{(\w+)\}/);
  const pattern = parts.map((part, i) => (i % 2 ? VALUES[part] ?? VALUE : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))).join("");
  const names = parts.filter((_, i) => i % 2);
  const weight = english.replace(/\{\w+\}/g, "").length;
  return { pattern: new RegExp(`^${pattern}$`, "su"), names, german, weight, ends: /[.?!]$|\{(?:error|warning)\}$/.test(english) };
}

/** The German of exactly this text, a sentence or a part of one, or null. */
function whole(text, ends = true) {
  for (const one of table) {
    const { names, german } = one;
    const found = one.ends === ends && one.pattern.exec(text);
    if (!found) continue;
    // What a file within a file is warned of stands behind its name; any other colon is none of ours.
    if (names.at(-1) === "warning" && told(found.at(-1)) === found.at(-1)) continue;
    const values = Object.fromEntries(names.map((name, i) => [name, filled(name, found[i + 1])]));
    return german.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  }
  return null;
}

/** Names of files, teams and hosts stay as they are, whatever words they are made of. */
function filled(name, text) {
  if (name === "warning") return told(text);
  // A sentence that ends with another may have lost its own full stop.
  if (name === "error") return /[.?!]$/.test(text) ? told(text) : told(`${text}.`).replace(/\.$/, "");
  return WORDED.has(name) ? whole(text, false) ?? text : amountTold(text);
}

/** A part of a sentence, such as the name of a limit, as this reader is told it. */
export function phraseTold(text) {
  return whole(text, false) ?? text;
}

/** A message of the server as this reader is told it; where a sentence of it is not known, all of it stays English. */
export function told(text) {
  if (!table.length || typeof text !== "string") return text;
  const parts = text.split(END);
  const said = [];
  while (parts.length) {
    // What belongs together is one entry: the longest run that is known.
    let n = parts.length;
    while (n && whole(parts.slice(0, n).join(" ")) === null) n -= 1;
    if (!n) return text;
    said.push(whole(parts.splice(0, n).join(" ")));
  }
  return said.join(" ");
}
