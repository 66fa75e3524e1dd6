// API keys: made, shown once with a way to use them, listed with their last use, revoked.
import { all, get, post, remove } from "../../common/js/api.js";
import { failed, h, report, skeleton } from "../../common/js/dom.js";
import { ago, day, exactTime } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import { keyForm, showProblems } from "./key-form.js";
import { ask, copyButton, formBehind, shownOnce } from "./own-list.js";

const box = document.getElementById("keys");
const formBox = document.getElementById("key-form-box");
const issued = document.getElementById("issued");
const problem = document.getElementById("problem");
const opener = document.getElementById("new-key");
let keys = [];
let me = null;
let models = [];
const say = (error) => report(problem, error);

function example(title, code) {
  return h("div", {}, h("div", { class: "example-head" }, h("h3", {}, title), copyButton(() => code, t("Copy"))), h("pre", { tabindex: "0" }, h("code", {}, code)));
}

function showOnce(made) {
  const base = window.location.origin;
  const model = made.models?.[0] ?? models[0]?.id ?? "MODEL";
  const curl = `curl ${base}/v1/chat/completions \\\n  -H "Authorization: Bearer ${made.key}" \\\n  -H "Content-Type: application/json" \\\n  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`;
  const python = `from openai import OpenAI\n\nclient = OpenAI(base_url="${base}/v1", api_key="${made.key}")\nanswer = client.chat.completions.create(\n    model="${model}",\n    messages=[{"role": "user", "content": "Hello"}],\n)\nprint(answer.choices[0].message.content)`;
  shownOnce(issued, {
    heading: "h2", title: t("Your new key"), secret: made.key, copy: t("Copy the key"), next: opener,
    words: t("This is the only time it is shown. Copy it now and keep it as you keep a password."),
    more: [example("curl", curl), example("Python, openai", python)],
  });
}

const closeForm = formBehind(opener, formBox, () => keyForm({ me, models, send, cancel: () => closeForm() }));

async function send(body) {
  const form = formBox.querySelector("form");
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  say(null);
  try {
    const made = await post("keys/", body);
    closeForm();
    const { key, ...rest } = made;
    keys = [rest, ...keys];
    draw();
    showOnce(made);
  } catch (error) {
    if (!showProblems(form, error)) say(error);
    button.disabled = false;
  }
}

function facts(key) {
  const ended = key.expires_at && new Date(key.expires_at) <= new Date();
  const periods = { day: t("a day"), week: t("a week"), month: t("a month"), lifetime: t("for good") };
  const units = { money: me.currency, tokens: t("tokens"), requests: t("requests") };
  const team = me.teams.find((row) => row.id === key.team_id)?.name;
  return [
    key.kind === "team" ? t("acts for the team") : t("acts for you"),
    team ? t("{team} pays", { team }) : null,
    key.budget ? t("at most {limit} {unit} {period}", { limit: key.budget.limit, unit: units[key.budget.unit], period: periods[key.budget.period] }) : null,
    key.models ? t("models: {models}", { models: key.models.join(", ") }) : null,
    key.networks?.length ? t("from {networks}", { networks: key.networks.join(", ") }) : null,
    key.expires_at ? (ended ? t("ended on {date}", { date: day(key.expires_at) }) : t("ends on {date}", { date: day(key.expires_at) })) : t("does not end"),
  ].filter(Boolean).join(" · ");
}

function askFirst(key, node) {
  ask(node, {
    words: t("Revoke “{name}”? Whatever uses it is refused from now on. This cannot be undone.", { name: key.name }),
    yes: t("Revoke"), act: () => revoke(key), keep: draw,
  });
}

async function revoke(key) {
  say(null);
  try {
    await remove(`keys/${key.id}/`);
  } catch (error) {
    if (error.status !== 404) {
      say(error);
      draw();
      return;
    }
  }
  keys = keys.filter((row) => row.id !== key.id);
  document.getElementById("said").textContent = t("The key was revoked.");
  draw();
  opener.focus();
}

function row(key) {
  const ended = key.expires_at && new Date(key.expires_at) <= new Date();
  const used = key.last_used_at
    ? h("time", { datetime: key.last_used_at, title: exactTime(key.last_used_at) }, t("last used {when}", { when: ago(key.last_used_at) }))
    : t("never used");
  const node = h("li", { class: ended ? "key expired" : "key", data: { id: key.id } },
    h("div", { class: "grow" }, h("h2", { class: "small" }, key.name, " ", h("code", {}, `${key.prefix}…`)),
      h("p", { class: "muted small" }, facts(key)), h("p", { class: "muted small" }, used, " · ", key.scopes.join(", "))),
    h("button", { type: "button", class: "button compact danger", "aria-label": t("Revoke {name}", { name: key.name }), onclick: () => askFirst(key, node) }, t("Revoke")));
  return node;
}

function draw() {
  box.replaceChildren(keys.length
    ? h("ol", { class: "key-list" }, keys.map(row))
    : h("p", { class: "muted" }, t("You have no key yet. Make one to use Tessera from a script or an app.")));
}

async function begin() {
  box.replaceChildren(skeleton(4));
  opener.disabled = true;
  try {
    [me, models, keys] = await Promise.all([get("me/"), all("models/"), get("keys/").then((part) => part.items)]);
    opener.disabled = false;
    draw();
  } catch (error) {
    box.replaceChildren(failed(error, begin));
  }
}

void begin();
