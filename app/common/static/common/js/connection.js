// One line at the top of the page that names the part which does not answer, and goes when it does again.
import { h, icon } from "./dom.js";
import { t } from "./i18n.js";

let box = null;
let timer = 0;

function element() {
  if (!box) {
    box = h("div", { id: "connection", class: "callout warn", role: "status", hidden: true });
    document.body.append(box);
  }
  return box;
}

/** Show a lasting word about the connection, or take it away with null. */
export function announce(text) {
  const target = element();
  target.replaceChildren();
  target.hidden = !text;
  if (text) target.append(icon("cloud-off"), h("div", { class: "grow" }, text));
}

async function parts() {
  // /readyz names what is down; when even that is silent, the web server itself is.
  const answer = await fetch("/readyz", { cache: "no-store", headers: { Accept: "application/json" } });
  if (answer.ok) return null;
  const body = await answer.json().catch(() => null);
  return body?.error?.message ?? body?.message ?? t("A part of this installation does not answer.");
}

async function look() {
  window.clearTimeout(timer);
  let words;
  try {
    words = navigator.onLine ? await parts() : t("This device is offline.");
  } catch {
    words = t("Tessera’s web server does not answer.");
  }
  announce(words ? t("{words} What you have typed is kept; this page tries again by itself.", { words }) : null);
  if (words) timer = window.setTimeout(look, 5000);
  else window.dispatchEvent(new CustomEvent("connection:back"));
}

/** Called by the API door after a failed request: find out what is wrong and say it. */
export function suspect() {
  void look();
}

export function watchConnection() {
  window.addEventListener("offline", () => void look());
  window.addEventListener("online", () => void look());
  if (!navigator.onLine) void look();
}
