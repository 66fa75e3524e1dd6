// The documents page: collections on the left, the documents of one of them on the right.
import { BASE, all, get, page, post, remove } from "../../common/js/api.js";
import { h, icon, report, skeleton } from "../../common/js/dom.js";
import { count } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import { documentRow } from "./document-row.js";
import { uploadZone } from "./uploads.js";

const list = document.getElementById("collection-list");
const pane = document.getElementById("collection");
const form = document.getElementById("collection-form");
const nameBox = document.getElementById("collection-name");
const teamBox = document.getElementById("collection-team");
const problem = document.getElementById("problem");
const said = document.getElementById("said");
const POLL_MS = 1000;
const CHECK_MS = 10_000;
const POLLED_AT_ONCE = 8;
let collections = [];
let current = null;
let rows = new Map();
let next = null;
let rowsBox = null;
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
  const words = [current.team ? t("Owned and paid by {team}", { team: current.team.name }) : null, { public: t("public"), internal: t("internal"), private: t("private") }[current.level]].filter(Boolean);
  const actions = h("div", { class: "head-actions" });
  if (may("manage")) actions.append(h("button", { type: "button", class: "icon-button", "aria-label": t("Delete {current}", { current: current.name }), title: t("Delete this collection"), onclick: () => askDelete(actions) }, icon("trash")));
  return h("header", { class: "collection-head" }, h("div", {}, h("h2", {}, current.name), h("p", { class: "muted small" }, words.join(" · "))), actions);
}

function askDelete(actions) {
  const yes = h("button", { type: "button", class: "button compact danger", onclick: () => void erase() }, t("Delete it"));
  const no = h("button", { type: "button", class: "button compact", onclick: () => drawPane() }, t("Keep"));
  actions.replaceChildren(h("p", { class: "small" }, t("Delete the collection and its {size} documents for good?", { size: count(current.document_count ?? rows.size) })), yes, no);
  no.focus();
}

async function erase() {
  try {
    await remove(`collections/${current.id}/`);
    collections = collections.filter((item) => item.id !== current.id);
    window.history.pushState({}, "", window.location.pathname);
    await open(null);
  } catch (error) {
    showProblem(error);
    drawPane();
  }
}

const rowActions = {
  changed: (item) => put(item),
  failed: showProblem,
  removed(item, words) {
    if (words) say(words);
    rows.get(item.id)?.node.remove();
    rows.delete(item.id);
    recount(-1);
    if (!rows.size) drawPane();
  },
};

function recount(step) {
  if (current.document_count !== undefined) current.document_count += step;
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
  const kept = [...rows.values()];
  rows = new Map();
  rowsBox = h("ul", { class: "documents" });
  const uploading = may("write") ? uploadZone(current.id, {
    started: (node) => rowsBox.prepend(node),
    done(item, isNew) {
      pane.querySelector(".no-documents")?.remove();
      if (isNew && !rows.has(item.id)) recount(1);
      // An event may have told more of it already.
      if (!(rows.get(item.id)?.item.updated_at > item.updated_at)) put(item, { top: true });
    },
  }) : h("p", { class: "muted small" }, t("You may read these documents; adding to them needs the right to write."));
  pane.replaceChildren(head(), uploading, rowsBox);
  kept.forEach(({ item }) => put(item));
  if (!kept.length) pane.append(h("p", { class: "muted no-documents" }, t("There is nothing in this collection yet.")));
  if (next) pane.append(h("button", { type: "button", class: "button compact more", onclick: (event) => void more(event.currentTarget) }, t("Show more")));
}

async function more(button) {
  button.disabled = true;
  try {
    const part = await page(`collections/${current.id}/documents/`, { cursor: next });
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
    const part = await page(`collections/${opened.id}/documents/`);
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
  pane.querySelector(".no-documents")?.remove();
  recount(1);
  return put(item, { top: true });
}

function showForm(open) {
  form.hidden = !open;
  document.getElementById("new-collection").hidden = open;
  if (open) nameBox.focus();
}

async function create(event) {
  event.preventDefault();
  showProblem(null);
  try {
    const body = { name: nameBox.value.trim() };
    if (teamBox.value) body.team = teamBox.value;
    const made = await post("collections/", body);
    collections = [...collections, made].sort(byName);
    nameBox.value = "";
    showForm(false);
    window.history.pushState({}, "", `?collection=${made.id}`);
    await open(made.id);
  } catch (error) {
    showProblem(error);
  }
}

function drawTeams(me) {
  const owned = me.teams.filter((team) => ["admin", "owner"].includes(team.role));
  teamBox.replaceChildren(...owned.map((team) => h("option", { value: team.id }, team.name)));
  teamBox.value = owned.find((team) => team.id === me.default_team?.id)?.id ?? owned[0]?.id ?? "";
  document.getElementById("collection-team-field").hidden = owned.length < 2;
}

const fromAddress = () => new URLSearchParams(window.location.search).get("collection");

async function begin() {
  document.getElementById("new-collection").addEventListener("click", () => showForm(true));
  document.getElementById("collection-cancel").addEventListener("click", () => showForm(false));
  form.addEventListener("submit", (event) => void create(event));
  window.addEventListener("popstate", () => void open(fromAddress()));
  document.addEventListener("visibilitychange", follow);
  list.replaceChildren(skeleton(4));
  try {
    const [me, found] = await Promise.all([get("me/"), all("collections/")]);
    collections = found.sort(byName);
    drawTeams(me);
  } catch (error) {
    list.replaceChildren();
    return showProblem(error);
  }
  await open(fromAddress());
  return poll();
}

void begin();
