// The page of saved assistants: a list, and one form for making and changing.
import { ApiError, all, get, patch, post, remove } from "../../common/js/api.js";
import { h, icon, report, skeleton } from "../../common/js/dom.js";
import { count } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";

const byId = (id) => document.getElementById(id);
const list = byId("assistants");
const form = byId("assistant-form");
const problem = byId("problem");
const FIELDS = ["name", "slug", "description", "prompt", "model", "level"];
let assistants = [];
let models = [];
let collections = [];
let teams = [];
/** The one that is being changed, or null for a new one. */
let current = null;

function say(words) {
  byId("said").textContent = words;
}

function showProblem(error, retry = null) {
  report(problem, error, retry);
}

const collectionName = (id) => collections.find((item) => item.id === id)?.name ?? t("a collection you may not read");

function facts(item) {
  const words = [
    item.model, ...item.collections.map(collectionName), item.level === "public" ? null : item.level,
    item.shared_with.length
      ? t("of {team}, shared with {teams}", { team: item.team.name, teams: item.shared_with.map((team) => team.name).join(", ") })
      : t("of {team}", { team: item.team.name }), item.model_name,
  ];
  return h("p", { class: "assistant-facts" }, words.filter(Boolean).map((word) => h("span", {}, word)));
}

function card(item) {
  const actions = h("div", { class: "assistant-actions" }, h("a", { class: "button compact", href: `/?assistant=${item.id}` }, t("Ask it")));
  if (item.may_change) {
    actions.append(h("button", { type: "button", class: "button compact", onclick: () => edit(item) }, t("Change")),
      h("button", { type: "button", class: "icon-button compact", "aria-label": t("Delete {item}", { item: item.name }), title: t("Delete"), onclick: () => confirmDelete(item, actions) }, icon("trash", true)));
  }
  return h("li", { class: "assistant", data: { id: item.id } },
    h("div", { class: "assistant-head" }, h("div", {}, h("h2", { dir: "auto" }, item.name), item.description ? h("p", { class: "small", dir: "auto" }, item.description) : null), actions),
    item.prompt ? h("p", { class: "prompt", dir: "auto" }, item.prompt) : null, facts(item));
}

function draw() {
  if (assistants.length) list.replaceChildren(...assistants.map(card));
  else list.replaceChildren(h("li", { class: "blank" }, h("h2", {}, t("No assistants yet")),
    h("p", { class: "muted" }, t("Save what you would otherwise write again and again: how to answer, from which documents, with which model.")),
    h("button", { type: "button", class: "button primary", onclick: () => edit(null) }, t("Make one"))));
}

function confirmDelete(item, actions) {
  const gone = async () => {
    try {
      await remove(`assistants/${item.id}/`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      showProblem(error);
      draw();
      return;
    }
    assistants = assistants.filter((other) => other.id !== item.id);
    say(t("{item} is deleted.", { item: item.name }));
    draw();
    byId("new-assistant").focus();
  };
  actions.replaceChildren(h("span", { class: "small" }, t("Conversations with it stay. Delete?")),
    h("button", { type: "button", class: "button compact danger", onclick: () => void gone() }, t("Delete")),
    h("button", { type: "button", class: "button compact", onclick: draw }, t("Keep")));
  actions.querySelector("button").focus();
}

function picks(box, items, chosen, words) {
  byId(box).replaceChildren(...(items.length ? items.map((item) => h("label", {},
    h("input", { type: "checkbox", value: item.id, checked: chosen.includes(item.id) }), h("span", { dir: "auto" }, item.name))) : [h("p", { class: "muted small" }, words)]));
}

const picked = (box) => [...byId(box).querySelectorAll("input:checked")].map((input) => input.value);

function slugOf(name) {
  return name.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60);
}

function showSlug() {
  byId("slug-shown").textContent = `assistant/${byId("slug").value || slugOf(byId("name").value) || "…"}`;
}

function options(select, items, value) {
  byId(select).replaceChildren(...items.map((item) => h("option", { value: item.id }, item.name)));
  if (value && !items.some((item) => item.id === value)) byId(select).append(h("option", { value }, t("{value} (no longer there)", { value })));
  byId(select).value = value ?? items[0]?.id ?? "";
}

function edit(item) {
  current = item;
  showProblem(null);
  byId("form-title").textContent = item ? t("Change {item}", { item: item.name }) : t("New assistant");
  options("model", models, item?.model);
  options("team", teams, item?.team.id);
  for (const name of FIELDS) if (name !== "model") byId(name).value = item?.[name] ?? (name === "level" ? "public" : "");
  byId("team-field").hidden = Boolean(item) || teams.length < 2;
  const owner = item?.team.id ?? byId("team").value;
  drawShared(owner, (item?.shared_with ?? []).map((team) => team.id));
  picks("collections", collections, item?.collections ?? [], t("There are no collections you can read."));
  showSlug();
  form.hidden = false;
  byId("name").focus();
}

function drawShared(owner, chosen) {
  const others = teams.filter((team) => team.id !== owner);
  byId("shared-field").hidden = !others.length;
  picks("shared", others, chosen, "");
}

function body() {
  const values = Object.fromEntries(FIELDS.map((name) => [name, byId(name).value]));
  if (!values.slug) delete values.slug;
  const given = { ...values, collections: picked("collections"), shared_with: picked("shared") };
  return current || !byId("team").value ? given : { ...given, team: byId("team").value };
}

async function save(event) {
  event.preventDefault();
  byId("save").disabled = true;
  try {
    const saved = current ? await patch(`assistants/${current.id}/`, body()) : await post("assistants/", body());
    assistants = [...assistants.filter((item) => item.id !== saved.id), saved].sort((a, b) => a.name.localeCompare(b.name));
    showProblem(null);
    form.hidden = true;
    draw();
    say(t("{saved} is saved.", { saved: saved.name }));
    list.querySelector(`[data-id="${CSS.escape(saved.id)}"] a`)?.focus();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    showProblem(error);
  } finally {
    byId("save").disabled = false;
  }
}

async function begin() {
  list.replaceChildren(h("li", {}, skeleton(4)));
  try {
    const [me, found, chat, readable] = await Promise.all([get("me/"), all("assistants/"), all("models/"), all("collections/")]);
    [assistants, models, collections] = [found, chat.filter((model) => model.purpose === undefined || model.purpose === "chat"), readable];
    teams = me.teams.filter((team) => team.role !== "viewer");
    showProblem(null);
    draw();
    // Before, the form would have no models to choose from.
    byId("new-assistant").disabled = false;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    list.replaceChildren();
    showProblem(error, begin);
  }
}

form.addEventListener("submit", (event) => void save(event));
byId("name").addEventListener("input", showSlug);
byId("slug").addEventListener("input", showSlug);
byId("team").addEventListener("change", () => drawShared(byId("team").value, picked("shared")));
byId("prompt").addEventListener("input", () => {
  const left = 20000 - byId("prompt").value.length;
  byId("prompt-hint").textContent = left < 1000 ? t("{left} characters left.", { left: count(left) }) : t("They go along with every question and count as input tokens each time.");
});
byId("cancel").addEventListener("click", () => (form.hidden = true));
byId("new-assistant").addEventListener("click", () => edit(null));
void begin();
