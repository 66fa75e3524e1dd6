// Building elements without markup strings: nothing a person or a model wrote is ever parsed as HTML here.
import { t } from "./i18n.js";

const SVG = "http://www.w3.org/2000/svg";

function assign(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (name === "class") node.className = value;
  else if (name === "data") Object.assign(node.dataset, value);
  else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") node[name] = value;
  else node.setAttribute(name, value === true ? "" : String(value));
}

/** h("p", {class: "x", onclick: f}, "text", otherNode, [more]) → element. */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) assign(node, name, value);
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** One symbol of the sprite in the page. */
export function icon(name, small = false) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", small ? "icon small" : "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

export function iconButton(name, label, onclick, extra = {}) {
  const { class: more = "", ...rest } = extra;
  return h(
    "button",
    { type: "button", class: `icon-button compact ${more}`.trim(), "aria-label": label, title: label, onclick, ...rest },
    icon(name, true),
  );
}

/** The bootstrap data that a view left in the page. */
export function pageData(id) {
  const node = document.getElementById(id);
  return node ? JSON.parse(node.textContent) : {};
}

export function skeleton(lines = 3) {
  const rows = Array.from({ length: lines }, (_, i) => h("span", { class: i % 2 ? "skeleton short" : "skeleton" }));
  return h("div", { class: "skeleton-box", "aria-hidden": "true" }, rows);
}

/** What went wrong, in the place of what was asked for; `again` where another try may help. */
export function failed(error, again = null) {
  const retry = again && h("div", { class: "actions" }, h("button", { type: "button", class: "button compact", onclick: () => void again() }, t("Try again")));
  return h("div", { class: "callout bad", role: "alert" }, icon("alert"), h("div", { class: "grow" }, h("p", {}, error.message), retry));
}

/** Say in `box` what went wrong, or with null that nothing is wrong any more. */
export function report(box, error, again = null) {
  box.hidden = !error;
  box.replaceChildren(...(error ? [failed(error, again)] : []));
}

/** Copy text; says whether it worked, so that the caller can say so. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
