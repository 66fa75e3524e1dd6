// Webhooks: addresses that hear when something of theirs has ended.
import { get, patch, post, remove } from "../../common/js/api.js";
import { failed, h, report, skeleton } from "../../common/js/dom.js";
import { ago, exactTime } from "../../common/js/format.js";
import { t, tn } from "../../common/js/i18n.js";
import { told } from "../../common/js/sentences.js";
import { ask, formBehind, shownOnce } from "./own-list.js";

const EVENTS = {
  "document.ready": () => t("a document can be searched"),
  "document.failed": () => t("a document could not be read"),
  "turn.finished": () => t("an answer is complete"),
  "turn.failed": () => t("an answer failed"),
  "export.ready": () => t("an export is ready"),
  "export.failed": () => t("an export failed"),
};

const box = document.getElementById("webhooks");
const formBox = document.getElementById("webhook-form-box");
const issued = document.getElementById("webhook-issued");
const problem = document.getElementById("webhook-problem");
const opener = document.getElementById("new-webhook");
let hooks = [];
let me = null;
const say = (error) => report(problem, error);

function announce(words) {
  document.getElementById("said").textContent = words;
}

function showOnce(secret) {
  shownOnce(issued, {
    heading: "h3", title: t("The secret of the new webhook"), secret, copy: t("Copy the secret"), next: opener,
    words: t("Messages are signed with it, so that your program knows they are ours. This is the only time it is shown."),
  });
}

async function send(node) {
  const of = (id) => node.querySelector(`#${id}`).value.trim();
  const owner = of("webhook-owner");
  const events = [...node.querySelectorAll("[name=event]:checked")].map((one) => one.value);
  const body = { name: of("webhook-name"), url: of("webhook-url"), events, ...(owner ? { kind: "team", team: owner } : {}) };
  const button = node.querySelector("[type=submit]");
  button.disabled = true;
  say(null);
  try {
    const { secret, ...made } = await post("webhooks/", body);
    closeForm();
    hooks = [made, ...hooks];
    draw();
    showOnce(secret);
  } catch (error) {
    const [words] = Object.values(error.detail?.fields ?? {}).flat();
    say(words ? { message: words } : error);
    button.disabled = false;
  }
}

function form() {
  const managed = me.teams.filter((team) => ["admin", "owner"].includes(team.role));
  const node = h("form", { class: "key-form", "aria-label": t("New webhook"), onsubmit: (event) => { event.preventDefault(); void send(node); } },
    h("div", { class: "field" }, h("label", { for: "webhook-name" }, t("Name")), h("input", { class: "input", id: "webhook-name", maxlength: "100", required: true, autocomplete: "off" })),
    h("div", { class: "field" }, h("label", { for: "webhook-url" }, t("Address")), h("input", { class: "input", id: "webhook-url", type: "url", maxlength: "500", required: true, placeholder: "https://…", autocomplete: "off" })),
    h("div", { class: "field" }, h("label", { for: "webhook-owner" }, t("It hears of")), h("select", { class: "input", id: "webhook-owner" },
      h("option", { value: "" }, t("What I add and ask")), managed.map((team) => h("option", { value: team.id }, t("{team}: its documents and what its own keys ask", { team: team.name }))))),
    h("fieldset", {}, h("legend", {}, t("It hears when")), Object.entries(EVENTS).map(([name, words]) =>
      h("label", { class: "check" }, h("input", { type: "checkbox", name: "event", value: name, checked: true }), words()))),
    h("div", { class: "actions" }, h("button", { type: "submit", class: "button primary" }, t("Add the webhook")), h("button", { type: "button", class: "button", onclick: closeForm }, t("Cancel"))));
  return node;
}

const closeForm = formBehind(opener, formBox, form);

function put(hook) {
  hooks = hooks.map((row) => (row.id === hook.id ? hook : row));
  draw();
}

async function act(work, words) {
  say(null);
  try {
    await work();
    announce(words);
  } catch (error) {
    say(error);
  }
}

function test(hook) {
  return act(async () => {
    await post(`webhooks/${hook.id}/test/`, {});
    put(await get(`webhooks/${hook.id}/`));
  }, t("A test message is on its way; it arrives within seconds."));
}

function turn(hook) {
  return act(async () => put(await patch(`webhooks/${hook.id}/`, { active: !hook.active })), hook.active ? t("The webhook is stopped.") : t("The webhook is active."));
}

function end(hook) {
  return act(async () => {
    await remove(`webhooks/${hook.id}/`);
    hooks = hooks.filter((row) => row.id !== hook.id);
    draw();
    opener.focus();
  }, t("The webhook was removed."));
}

function askFirst(hook, node) {
  ask(node, {
    words: t("Remove “{name}”? What it has not taken yet is not sent any more.", { name: hook.name }),
    yes: t("Remove"), act: () => end(hook), keep: draw,
  });
}

function facts(hook) {
  const team = me.teams.find((row) => row.id === hook.team_id)?.name;
  const chosen = hook.events.length === Object.keys(EVENTS).length ? t("everything") : hook.events.map((name) => EVENTS[name]?.() ?? name).join(", ");
  return [team ?? t("your own jobs"), chosen].join(" · ");
}

function standing(hook) {
  const parts = [hook.last_delivered_at
    ? h("time", { datetime: hook.last_delivered_at, title: exactTime(hook.last_delivered_at) }, t("last message taken {when}", { when: ago(hook.last_delivered_at) }))
    : t("no message taken yet")];
  if (hook.waiting) parts.push(" · ", tn("1 waits", "{n} wait", hook.waiting));
  if (hook.given_up) parts.push(" · ", tn("1 given up", "{n} given up", hook.given_up));
  return parts;
}

function row(hook) {
  const node = h("li", { class: hook.active ? "key" : "key expired", data: { id: hook.id } },
    h("div", { class: "grow" }, h("h3", { class: "small" }, hook.name, " ", h("code", {}, hook.url), hook.active ? null : [" ", h("span", { class: "badge" }, t("stopped"))]),
      h("p", { class: "muted small" }, facts(hook)), h("p", { class: "muted small" }, standing(hook)),
      hook.problem ? h("p", { class: "warn small" }, t("Not taken: {why}", { why: told(hook.problem.message) })) : null),
    hook.active ? h("button", { type: "button", class: "button compact", "aria-label": t("Send a test to {name}", { name: hook.name }), onclick: () => void test(hook) }, t("Send a test")) : null,
    h("button", { type: "button", class: "button compact", "aria-label": hook.active ? t("Stop {name}", { name: hook.name }) : t("Start {name}", { name: hook.name }), onclick: () => void turn(hook) }, hook.active ? t("Stop") : t("Start again")),
    h("button", { type: "button", class: "button compact danger", "aria-label": t("Remove {name}", { name: hook.name }), onclick: () => askFirst(hook, node) }, t("Remove")));
  return node;
}

function draw() {
  box.replaceChildren(hooks.length ? h("ol", { class: "key-list" }, hooks.map(row)) : h("p", { class: "muted" }, t("None yet. An app of yours can be told when a document or an answer is done, instead of asking again and again.")));
}

async function begin() {
  box.replaceChildren(skeleton(2));
  opener.disabled = true;
  try {
    [me, hooks] = await Promise.all([get("me/"), get("webhooks/").then((part) => part.items)]);
    opener.disabled = false;
    draw();
  } catch (error) {
    box.replaceChildren(failed(error, begin));
  }
}

void begin();
