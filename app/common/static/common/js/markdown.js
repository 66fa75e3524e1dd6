// Markdown from a model, made safe twice: raw HTML is escaped by the parser, the finished DOM is sanitised.
import MarkdownIt from "../../vendor/markdown-it/markdown-it.esm.min.mjs";
import DOMPurify from "../../vendor/dompurify/purify.es.mjs";
import { copyText, h, icon } from "./dom.js";
import { mathFence, mathRules, typeset } from "./math.js";
import { t } from "./i18n.js";

const md = new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false });
mathRules(md);
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });

// A picture address can carry a conversation away to a stranger, so pictures are named and never fetched.
md.renderer.rules.image = (tokens, index) => {
  const words = tokens[index].content || "picture";
  return `<span class="no-picture">[${md.utils.escapeHtml(t("{words}: pictures are not loaded", { words }))}]</span>`;
};

// Alignment comes as a style attribute, which the content security policy forbids; a class says the same.
for (const rule of ["th_open", "td_open"]) {
  md.renderer.rules[rule] = (tokens, index, options, env, self) => {
    const style = tokens[index].attrGet("style");
    if (style) {
      tokens[index].attrs = tokens[index].attrs.filter(([name]) => name !== "style");
      tokens[index].attrJoin("class", `align-${style.split(":")[1]}`);
    }
    return self.renderToken(tokens, index, options);
  };
}

const POLICY = {
  ALLOWED_TAGS: ["p", "br", "hr", "em", "strong", "s", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a", "span",
    "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"],
  ALLOWED_ATTR: ["href", "title", "class", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

function dressLink(link) {
  const href = link.getAttribute("href");
  if (!href) return;
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  link.title = link.hostname ? t("Opens {hostname}", { hostname: link.hostname }) : href;
}

function copyButton(text) {
  const words = h("span", {}, t("Copy"));
  const button = h("button", { type: "button", class: "code-copy" }, icon("copy", true), words);
  button.addEventListener("click", async () => {
    words.textContent = (await copyText(text)) ? t("Copied") : t("Not allowed here");
    window.setTimeout(() => (words.textContent = t("Copy")), 1500);
  });
  return button;
}

let highlighter = null;

async function highlight(code, language) {
  highlighter ??= import("../../vendor/highlightjs/highlight.min.js");
  const { default: hljs } = await highlighter;
  if (!hljs.getLanguage(language)) return;
  const { value } = hljs.highlight(code.textContent, { language, ignoreIllegals: true });
  code.replaceChildren(DOMPurify.sanitize(value, { ...POLICY, ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"] }));
}

function dressCode(pre) {
  const code = pre.querySelector("code");
  if (!code) return;
  const language = /language-([\w+#-]+)/.exec(code.className)?.[1] ?? "";
  const head = h("div", { class: "code-head" }, h("span", {}, language || "text"), copyButton(code.textContent));
  const box = h("div", { class: "code" }, head);
  pre.replaceWith(box);
  pre.tabIndex = 0;
  box.append(pre);
  if (language) void highlight(code, language);
}

/** Markdown → a safe fragment. `finished` is false while the text may still grow: code is then left plain. */
export function render(text, { finished = true } = {}) {
  const fragment = DOMPurify.sanitize(md.render(text), POLICY);
  fragment.querySelectorAll("a").forEach(dressLink);
  fragment.querySelectorAll("table").forEach((table) => {
    const box = h("div", { class: "table-box", tabindex: "0", role: "group", "aria-label": t("Table") });
    table.replaceWith(box);
    box.append(table);
  });
  fragment.querySelectorAll("p, li, h1, h2, h3, h4, h5, h6, td, th, blockquote").forEach((block) => (block.dir = "auto"));
  if (finished) fragment.querySelectorAll("pre").forEach(dressCode);
  typeset(fragment);
  return fragment;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
// The start of a line that may belong to the block before it, also when its end has not arrived yet ("2" of "2.").
const CONTINUES = /^(\s|[-*+](\s|$)|[>|]|\d{1,9}([.)]|$))/;

/**
 * How much of a growing text is settled: the length up to the last blank line that lies outside a fence and is
 * followed by the start of a plain block, so that lists and quotations are never torn apart.
 */
export function settledLength(text) {
  let fence = null;
  let formula = null;
  let blankBefore = false;
  let settled = 0;
  let at = 0;
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    if (!fence && !formula && blankBefore && line.trim() && !CONTINUES.test(line)) settled = at;
    if (fence) {
      if (mark && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = null;
    } else if (formula) {
      if (line.trimEnd().endsWith(formula)) formula = null;
    } else if (mark) fence = mark;
    else formula = mathFence(line);
    blankBefore = !fence && !formula && line.trim() === "";
    at += line.length + 1;
  }
  return settled;
}
