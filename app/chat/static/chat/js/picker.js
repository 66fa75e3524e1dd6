// What a question goes with: the model, the collections, the team that pays.
import { ApiError, patch } from "../../common/js/api.js";
import { h, icon } from "../../common/js/dom.js";
import { count, money } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import { assistantOf, collectionName, emit, modelOf, on, recall, remember, state } from "./state.js";

const modelBox = document.getElementById("model");
const chips = document.getElementById("collections");
const panel = document.getElementById("collection-panel");
const payer = document.getElementById("payer");

function rate(model, component) {
  const found = (model.price ?? []).find((item) => item.component === component && !item.min_prompt_tokens);
  if (!found) return null;
  const { amount, currency } = found.price;
  return money({ amount: Number(amount) * (1_000_000 / found.per_units), currency });
}

function perMillion(model) {
  const [input, output] = [rate(model, "input"), rate(model, "output")];
  return input && output ? t("{input} in, {output} out per million tokens", { input, output }) : t("price unknown");
}

const ASSISTANT = "assistant:";

function drawModels() {
  const models = state.models.map((model) => {
    const window = model.context_window ? t("{context_window} tokens", { context_window: count(model.context_window) }) : t("window unknown");
    return h("option", { value: model.id, title: `${window}; ${perMillion(model)}` }, model.name + (model.is_demonstration ? " (demo)" : ""));
  });
  const assistants = state.assistants.map((item) => h("option", { value: ASSISTANT + item.id, title: item.description || item.model }, item.name));
  modelBox.replaceChildren(...(assistants.length ? [h("optgroup", { label: t("Models") }, models), h("optgroup", { label: t("Assistants") }, assistants)] : models));
  if (!state.models.length) modelBox.append(h("option", { value: "" }, t("No model is connected")));
  modelBox.value = state.choice.assistant ? ASSISTANT + state.choice.assistant : state.choice.model ?? "";
  drawModelTitle();
}

function drawModelTitle() {
  const model = modelOf(state.choice.model);
  const assistant = assistantOf(state.choice.assistant);
  modelBox.title = [assistant && `${assistant.name}: ${state.choice.model}`, model ? perMillion(model) : t("Model")].filter(Boolean).join("; ");
}

/** Choose who answers: a model, or an assistant with its model and its documents. */
async function choose(value) {
  const assistant = value.startsWith(ASSISTANT) ? assistantOf(value.slice(ASSISTANT.length)) : null;
  const before = state.choice.assistant;
  state.choice.assistant = assistant?.id ?? null;
  state.choice.model = assistant ? assistant.model : value || null;
  // Its documents as they are: one that may not be read is named by the server, never left out in silence.
  if (assistant) state.choice.collections = [...assistant.collections];
  else remember("model", state.choice.model);
  drawModelTitle();
  drawChips();
  if (state.conversation && before !== state.choice.assistant) {
    try {
      await patch(`conversations/${state.conversation.id}/`, { assistant: state.choice.assistant });
      state.conversation.assistant = state.choice.assistant;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      state.choice.assistant = before;
      drawModels();
      emit("problem", error);
    }
  }
  emit("choice");
}

const MOST_CHIPS = 3;

function drawChips() {
  const chosen = state.choice.collections;
  const shown = chosen.length > MOST_CHIPS ? chosen.slice(0, MOST_CHIPS - 1) : chosen;
  const items = shown.map((id) => h("span", { class: "chip" }, h("span", { class: "name" }, collectionName(id)),
    h("button", { type: "button", class: "chip-x", "aria-label": t("Leave out {id}", { id: collectionName(id) }), onclick: () => toggle(id, false) }, icon("x", true))));
  const more = chosen.length - shown.length;
  const wide = chosen.length === 0 ? t("No documents") : more ? t("{more} more", { more }) : "";
  const narrow = chosen.length === 0 ? t("No documents") : chosen.length === 1 ? collectionName(chosen[0]) : t("{chosen} collections", { chosen: chosen.length });
  chips.replaceChildren(...items, h("button", {
    type: "button", class: "chip add", id: "collection-open", "aria-haspopup": "dialog", "aria-expanded": String(!panel.hidden),
    "aria-label": t("Choose collections"), title: t("Choose collections"), onclick: () => openPanel(panel.hidden),
  }, icon(chosen.length ? "plus" : "docs", true), wide ? h("span", { class: "on-wide" }, wide) : null, h("span", { class: "on-narrow name" }, narrow)));
}

function drawPanel() {
  const rows = state.collections.map((item) => h("label", { class: "pick" },
    h("input", { type: "checkbox", checked: state.choice.collections.includes(item.id), onchange: (event) => toggle(item.id, event.target.checked) }),
    h("span", { class: "name" }, item.name),
    h("span", { class: "muted small num" }, item.document_count === undefined ? "" : `${count(item.document_count)} ${item.document_count === 1 ? "document" : "documents"}`)));
  panel.replaceChildren(h("p", { class: "muted small" }, rows.length ? t("Search these collections") : t("There are no collections you can read.")),
    ...rows, h("p", { class: "small" }, h("a", { href: "/documents/" }, t("Add or manage documents"))));
}

function openPanel(open) {
  if (open) drawPanel();
  panel.hidden = !open;
  document.getElementById("collection-open")?.setAttribute("aria-expanded", String(open));
  if (open) (panel.querySelector("input") ?? panel.querySelector("a")).focus();
}

function toggle(id, chosen) {
  const rest = state.choice.collections.filter((other) => other !== id);
  state.choice.collections = chosen ? [...rest, id] : rest;
  remember("collections", state.choice.collections);
  drawChips();
  if (!panel.hidden) drawPanel();
  panel.querySelectorAll("input")[state.collections.findIndex((item) => item.id === id)]?.focus();
  emit("choice");
}

function drawPayer() {
  const teams = (state.me?.teams ?? []).filter((team) => team.role !== "viewer");
  const fixed = state.conversation?.team;
  if (fixed || teams.length < 2) {
    const name = fixed?.name ?? teams[0]?.name ?? state.me?.default_team?.name;
    payer.replaceChildren(name ? t("Paid by {name}", { name }) : "");
    payer.title = payer.textContent;
    return;
  }
  const select = h("select", { class: "bare-select", id: "team", "aria-label": t("Team that pays"), onchange: (event) => {
    state.choice.team = event.target.value;
    remember("team", state.choice.team);
    emit("choice");
  } }, teams.map((team) => h("option", { value: team.id }, team.name)));
  select.value = state.choice.team ?? teams[0].id;
  payer.replaceChildren(h("label", { for: "team" }, t("Paid by ")), select);
}

/** Choose for the conversation on screen, or for a new one what this person chose last. */
export function reset() {
  const readable = new Set(state.collections.map((item) => item.id));
  const own = state.conversation;
  const wanted = own ? own.assistant : new URLSearchParams(window.location.search).get("assistant");
  const assistant = assistantOf(wanted);
  state.choice.assistant = assistant?.id ?? null;
  const model = (own?.model || assistant?.model) ?? recall("model");
  const preferred = state.models.find((item) => !item.is_demonstration) ?? state.models[0];
  state.choice.model = modelOf(model)?.id ?? preferred?.id ?? null;
  const collections = own?.collections ?? assistant?.collections ?? recall("collections") ?? [...readable];
  state.choice.collections = assistant ? [...collections] : collections.filter((id) => readable.has(id));
  const teams = (state.me?.teams ?? []).filter((team) => team.role !== "viewer");
  const team = teams.find((item) => item.id === recall("team")) ?? teams.find((item) => item.id === state.me?.default_team?.id) ?? teams[0];
  state.choice.team = own?.team?.id ?? team?.id ?? null;
  draw();
}

export function draw() {
  drawModels();
  drawChips();
  drawPanel();
  drawPayer();
  emit("choice");
}

export function start() {
  modelBox.addEventListener("change", () => void choose(modelBox.value));
  document.addEventListener("pointerdown", (event) => {
    if (!panel.hidden && !event.target.closest("#collection-panel, #collections")) openPanel(false);
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    openPanel(false);
    document.getElementById("collection-open").focus();
  });
  on("conversation", drawPayer);
}
