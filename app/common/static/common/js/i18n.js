// Words in the reader's language. The key is the English sentence itself; what has no translation stays English.
const source = document.documentElement.dataset.words;
const words = source ? await load(source) : {};

/** A table of words; empty where it does not come. */
export async function load(address) {
  try {
    return await (await fetch(address)).json();
  } catch {
    // English is better than no page.
    return {};
  }
}

export const language = document.documentElement.lang || "en";

/** For dates: English ones are written the British way. */
export const locale = language === "en" ? "en-GB" : language;

function look(text, values) {
  return (words[text] || text).replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** t("Rename {title}", {title}) → the sentence in the reader's language. */
export function t(text, values = {}) {
  return look(text, values);
}

/** A sentence for one and one for more; {n} is the number. */
export function tn(one, more, n, values = {}) {
  return look(n === 1 ? one : more, { n, ...values });
}

/** A sentence with elements in it: tx("Press {key}.", {key: node}) → pieces for h(). */
export function tx(text, nodes) {
  return (words[text] || text).split(/\{(\w+)\}/).map((part, i) => (i % 2 ? nodes[part] ?? `{${part}}` : part));
}
