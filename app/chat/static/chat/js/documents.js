// The documents page: collections on the left, the documents of one of them on the right.
import { BASE, all, get, page } from "../../common/js/api.js";
import { h, report, skeleton } from "../../common/js/dom.js";
import { count } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import { collectionHead } from "./collection-head.js";
import { documentRow } from "./document-row.js";
import { finder } from "./finder.js";
import { offerTeams, showForm, startForm } from "./new-collection.js";
import { showReceipt } from "./receipts.js";
import { uploadZone } from "./uploads.js";

const list = document.getElementById("collection-list");
const pane = document.getElementById("collection");
const problem = document.getElementById("problem");
const said = document.getElementById("said");
const receipts = document.getElementById("receipts");
const POLL_MS = 1000;
const CHECK_MS = 10_000;
const POLLED_AT_ONCE = 8;
let collections = [];
let teams = [];
let current = null;
let rows = new Map();
let next = null;
let rowsBox = null;
let find = null;
let source = null;
let told = { id: null, last: "" };
let asked = 0;

function say(words) {
  said.textContent = words;
}

function showProblem(error) {
  report(problem, error);
}

const may = (verb) => current.verbs === undefined || current.verbs.includes(verb);

function drawList() {
  if (!collections.length) return list.replaceChildren();
  list.replaceChildren(h("ul", {}, collections.map((item) => h("li", {}, h("a", {
    href: `?collection=${item.id}`, class: "collection-link", "aria-current": item.id === current?.id ? "true" : null,
    onclick: (event) => {
      if (event.metaKey || event.ctrlKey) return;
      event.preventDefault();
      window.history.pushState({}, "", `?collection=${item.id}`);
      void open(item.id);
    },
  }, h("span", { class: "name" }, item.name), h("span", { class: "muted small num" }, item.document_count === undefined ? "" : count(item.document_count)))))));
  list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  return undefined;
}

function emptyPage() {
  pane.replaceChildren(h("div", { class: "blank" }, h("h2", {}, t("No collections yet")),
    h("p", { class: "muted" }, t("A collection holds documents that are searched and shared together. Make one, then drop your files into it.")),
    h("button", { type: "button", class: "button primary", onclick: () => showForm(true) }, t("Make a collection"))));
}

function head() {
  return collectionHead(current, { teams, may, documents: () => [...rows.values()].map(({ item }) => item).filter(({ status }) => status === "ready"),
    failed: showProblem,
    changed(made) {
      collections = collections.map((item) => (item.id === made.id ? made : item)).sort(byName);
      current = made;
      drawList();
      drawPane();
    },
    removed(words, receipt) {
      collections = collections.filter((item) => item.id !== current.id);
      window.history.pushState({}, "", window.location.pathname);
      showReceipt(receipts, words, receipt);
      void open(null);
    } });
}

const rowActions = {
  changed: (item) => put(item),
  failed: showProblem,
  removed(item, words, receipt) {
    if (words) showReceipt(receipts, words, receipt);
    rows.get(item.id)?.node.remove();
    rows.delete(item.id);
    recount(-1);
    if (!rows.size) drawRows();
  },
};

function recount(step) {
  if (current.document_count !== undefined) current.document_count += step;
  find.node.hidden = !current.document_count;
  drawList();
}

/** Add a document on top, or bring its row up to date. */
function put(item, { top = false } = {}) {
  const row = documentRow(item, { ...rowActions, writable: may("write"), manageable: may("manage") });
  const known = rows.get(item.id);
  if (known) known.node.replaceWith(row);
  else if (top) rowsBox.prepend(row);
  else rowsBox.append(row);
  rows.set(item.id, { item, node: row });
  if (known && known.item.status !== item.status && ["ready", "failed"].includes(item.status)) say(`${item.name}: ${item.status}`);
}

function drawPane() {
  rowsBox = h("ul", { class: "documents" });
  find = finder(current, { names: new Map(collections.map(({ id, name }) => [id, name])), narrowed: () => void narrow() });
  const uploading = may("write") ? uploadZone(current.id, {
    started: (node) => rowsBox.prepend(node),
    done(item, isNew) {
      if (isNew && !rows.has(item.id)) recount(1);
      // An event may have told more of it already.
      if (!(rows.get(item.id)?.item.updated_at > item.updated_at)) put(item, { top: true });
      if (!isNew) sayKnown(rows.get(item.id).node);
      bare();
    },
  }) : h("p", { class: "muted small" }, t("You may read these documents; adding to them needs the right to write."));
  pane.replaceChildren(head(), uploading, find.node, rowsBox, h("div", { id: "below" }));
  drawRows();
}

/** Of a file that was uploaded before; it would otherwise vanish without a word. */
function sayKnown(node) {
  node.querySelector(".grow").append(h("p", { class: "small known", role: "status" }, t("This very file is here already; it is kept once.")));
  node.scrollIntoView({ block: "nearest" });
}

/** The rows as they are known, and what stands where there are none. */
function drawRows() {
  const kept = [...rows.values()];
  rows = new Map();
  rowsBox.querySelectorAll(".document:not(.uploading)").forEach((node) => node.remove());
  kept.forEach(({ item }) => put(item));
  document.getElementById("below").replaceChildren(
    next ? h("button", { type: "button", class: "button compact more", onclick: (event) => void more(event.currentTarget) }, t("Show more")) : "");
  bare();
}

function bare() {
  pane.querySelector(".no-documents")?.remove();
  if (rows.size) return;
  const words = find.only().length ? t("No document here fits what you look for.") : t("There is nothing in this collection yet.");
  document.getElementById("below").append(h("p", { class: "muted no-documents", role: "status" }, words));
}

/** Show only what fits what is looked for; an answer that comes late is for another question. */
async function narrow() {
  const opened = current;
  const only = find.only();
  try {
    const part = await page(documentsOf(opened), { only });
    if (opened !== current || String(only) !== String(find.only())) return;
    ({ next } = part);
    rows = new Map(part.items.map((item) => [item.id, { item, node: null }]));
    drawRows();
  } catch (error) {
    showProblem(error);
  }
}

const documentsOf = (item) => `collections/${item.id}/documents/`;

async function more(button) {
  button.disabled = true;
  try {
    const part = await page(documentsOf(current), { cursor: next, only: find.only() });
    next = part.next;
    part.items.forEach((item) => put(item));
    if (!next) button.remove();
  } catch (error) {
    showProblem(error);
  }
  button.disabled = false;
}

async function open(id) {
  showProblem(null);
  current = collections.find((item) => item.id === id) ?? collections[0] ?? null;
  rows = new Map();
  next = null;
  told = { id: null, last: "" };
  drawList();
  source?.close();
  if (!current) return emptyPage();
  const opened = current;
  const slow = window.setTimeout(() => pane.replaceChildren(skeleton(8)), 150);
  try {
    const part = await page(documentsOf(opened));
    if (opened !== current) return undefined;
    next = part.next;
    part.items.forEach((item) => rows.set(item.id, { item, node: null }));
    drawPane();
    follow();
  } catch (error) {
    pane.replaceChildren(head());
    showProblem(error);
  } finally {
    window.clearTimeout(slow);
  }
  return undefined;
}

const byName = (a, b) => a.name.localeCompare(b.name);
const FINAL = ["ready", "failed", "cancelled"];

/** Ask for what is being read: each second where events do not come, now and then where they do. */
async function poll() {
  const open_ = [...rows.values()].filter(({ item }) => !FINAL.includes(item.status)).slice(0, POLLED_AT_ONCE);
  const due = !heard() || Date.now() - asked >= CHECK_MS;
  if (open_.length && due && !document.hidden) {
    asked = Date.now();
    const looked = await Promise.all(open_.map(({ item }) => get(`documents/${item.id}/`).catch((error) => (error.status === 404 ? { ...item, gone: true } : null))));
    for (const item of looked) {
      if (!item || !rows.has(item.id)) continue;
      if (item.gone) rowActions.removed(item);
      else put(item);
    }
  }
  window.setTimeout(() => void poll(), POLL_MS);
}

const heard = () => source?.readyState === EventSource.OPEN;

/** Follow the open collection by events. A tab that nobody sees keeps no connection; seen again, it goes on after the
 * last event it had, so that what came and went meanwhile is told. */
function follow() {
  source?.close();
  source = null;
  if (!current || document.hidden) return;
  if (told.id !== current.id) told = { id: current.id, last: "" };
  const heardOf = told;
  const after = heardOf.last ? `?after=${heardOf.last}` : "";
  source = new EventSource(`${BASE}collections/${heardOf.id}/events/${after}`);
  const on = (name, act) => source.addEventListener(name, ({ data, lastEventId }) => {
    if (current?.id !== heardOf.id) return;
    heardOf.last = lastEventId;
    act(JSON.parse(data));
  });
  on("following", () => {});
  on("document", tell);
  on("removed", ({ id }) => rows.has(id) && rowActions.removed(rows.get(id).item));
}

/** A document as an event has it: one of ours, or one that somebody else has just put in. */
function tell(item) {
  const [newest] = [...rows.values()].map((row) => row.item.created_at).sort().slice(-1);
  if (rows.has(item.id)) return put(item);
  if (!rowsBox || (newest && item.created_at <= newest)) return undefined;
  recount(1);
  // Whether it fits what is looked for, only the server knows.
  if (find.only().length) return undefined;
  put(item, { top: true });
  return bare();
}

const fromAddress = () => new URLSearchParams(window.location.search).get("collection");

async function begin() {
  startForm({ failed: showProblem, made(item) {
    collections = [...collections, item].sort(byName);
    window.history.pushState({}, "", `?collection=${item.id}`);
    void open(item.id);
  } });
  window.addEventListener("popstate", () => void open(fromAddress()));
  document.addEventListener("visibilitychange", follow);
  list.replaceChildren(skeleton(4));
  try {
    const [me, found] = await Promise.all([get("me/"), all("collections/")]);
    collections = found.sort(byName);
    ({ teams } = me);
    offerTeams(me);
  } catch (error) {
    list.replaceChildren();
    return showProblem(error);
  }
  await open(fromAddress());
  return poll();
}

void begin();
