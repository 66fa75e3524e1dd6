// TeX in an answer: found by the parser, typeset by KaTeX, which is loaded with the first formula.
const MOST_CHARS = 4000;
const OPTIONS = { throwOnError: true, trust: false, strict: "ignore", maxExpand: 200, maxSize: 20, output: "htmlAndMathml" };
const PAIRS = [["$$", "$$", true], ["\\[", "\\]", true], ["\\(", "\\)", false]];

let katex = null;
let loading = null;

/** A number and then a word: a price. */
const AMOUNT = /^\d[\d.,]*[,;]?\s+[A-Za-z]{2,}/;

/** Where a single-dollar formula that opens at `pos` ends, or -1: "$5 and $6" is money. */
function dollarEnd(src, pos) {
  if (!src[pos + 1] || /[\s$]/.test(src[pos + 1]) || AMOUNT.test(src.slice(pos + 1, pos + 40))) return -1;
  for (let at = src.indexOf("$", pos + 2); at > 0; at = src.indexOf("$", at + 1)) {
    if (src[at - 1] === "\\") continue;
    return /\s/.test(src[at - 1]) || /\d/.test(src[at + 1] ?? "") ? -1 : at;
  }
  return -1;
}

function inline(state, silent) {
  const { src, pos } = state;
  const pair = PAIRS.find(([open]) => src.startsWith(open, pos));
  const dollar = !pair && src[pos] === "$";
  if (!pair && !dollar) return false;
  const width = pair ? 2 : 1;
  const end = pair ? src.indexOf(pair[1], pos + 2) : dollarEnd(src, pos);
  if (end < 0 || !src.slice(pos + width, end).trim()) return false;
  if (!silent) {
    const token = state.push("math", "math", 0);
    token.content = src.slice(pos + width, end);
    token.meta = { display: Boolean(pair?.[2]) };
  }
  state.pos = end + width;
  return true;
}

function block(state, startLine, endLine, silent) {
  const lineAt = (n) => state.src.slice(state.bMarks[n] + state.tShift[n], state.eMarks[n]);
  const first = lineAt(startLine);
  const pair = PAIRS.find(([open, , display]) => display && first.startsWith(open));
  if (!pair) return false;
  const parts = [first.slice(2)];
  let line = startLine;
  while (!parts.at(-1).trimEnd().endsWith(pair[1])) {
    line += 1;
    if (line >= endLine) return false;
    parts.push(lineAt(line));
  }
  if (silent) return true;
  const token = state.push("math_block", "math", 0);
  token.content = parts.join("\n").trimEnd().slice(0, -2);
  token.map = [startLine, line + 1];
  state.line = line + 1;
  return true;
}

/** Teach a markdown-it the four ways of writing a formula. */
export function mathRules(md) {
  md.inline.ruler.before("escape", "math", inline);
  md.block.ruler.before("fence", "math_block", block, { alt: ["paragraph", "blockquote", "list"] });
  md.renderer.rules.math = (tokens, at) => `<span class="${tokens[at].meta.display ? "math display" : "math"}">${md.utils.escapeHtml(tokens[at].content)}</span>`;
  md.renderer.rules.math_block = (tokens, at) => `<p class="math display">${md.utils.escapeHtml(tokens[at].content)}</p>\n`;
}

function load() {
  const href = document.querySelector('meta[name="math-css"]')?.content;
  if (href) {
    const sheet = document.createElement("link");
    Object.assign(sheet, { rel: "stylesheet", href });
    document.head.append(sheet);
  }
  // The library is no module: it leaves its name in the window.
  return import("../../vendor/katex/katex.min.js").then(() => (katex = window.katex));
}

function typesetOne(node) {
  const source = node.textContent;
  if (source.length > MOST_CHARS) return;
  const box = document.createElement("span");
  try {
    katex.render(source, box, { ...OPTIONS, displayMode: node.classList.contains("display") });
  } catch {
    // What is no TeX stays as it was written.
    return;
  }
  node.replaceChildren(box);
  node.classList.add("typeset");
}

/** Typeset the formulas of a fragment, at once when the library is there. */
export function typeset(root) {
  const nodes = [...root.querySelectorAll(".math:not(.typeset)")];
  if (!nodes.length) return;
  if (katex) {
    nodes.forEach(typesetOne);
    return;
  }
  loading ??= load();
  loading.then(() => nodes.forEach(typesetOne)).catch(() => (loading = null));
}

/** Whether a line opens a formula that goes on in the next ones; gives what closes it. */
export function mathFence(line) {
  const text = line.trim();
  const pair = PAIRS.find(([open, , display]) => display && text.startsWith(open));
  return pair && !(text.length > 2 && text.slice(2).endsWith(pair[1])) ? pair[1] : null;
}
