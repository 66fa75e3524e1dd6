// The form for a new API key. What is left open is not sent, so that the server's own defaults hold.
import { h } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";

const DAY_MS = 86_400_000;

const SCOPES = {
  chat: () => t("Ask models (chat)"),
  embed: () => t("Embed texts"),
  read: () => t("Read conversations and documents"),
  write: () => t("Add documents, share, make keys"),
  usage: () => t("See usage"),
  staff: () => t("Administer (staff)"),
};

function field(id, label, input, hint = null) {
  return h("div", { class: "field" }, h("label", { for: id }, label), input, hint ? h("p", { class: "muted small", id: `${id}-hint` }, hint) : null,
    h("p", { class: "field-error small warn", id: `${id}-error`, hidden: true }));
}

function text(id, extra = {}) {
  return h("input", { class: "input", id, autocomplete: "off", ...extra });
}

function choice(id, options, extra = {}) {
  return h("select", { class: "input", id, ...extra }, options.map(([value, words, chosen]) => h("option", { value, selected: chosen || null }, words)));
}

function checks(legend, name, entries, hint = null) {
  return h("fieldset", {}, h("legend", {}, legend), hint ? h("p", { class: "muted small" }, hint) : null, entries.map(([value, words, on]) =>
    h("label", { class: "check" }, h("input", { type: "checkbox", name, value, checked: on }), words)));
}

function expiry(form) {
  const days = form.querySelector("#key-term").value;
  return days === "0" ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString();
}

function checked(form, name) {
  return [...form.querySelectorAll(`[name="${name}"]:checked`)].map((box) => box.value);
}

/** What the form says, as POST keys/ takes it. */
export function bodyOf(form) {
  const of = (id) => form.querySelector(`#${id}`).value.trim();
  const body = { name: of("key-name"), kind: of("key-kind"), team: of("key-team"), scopes: checked(form, "scope"), expires_at: expiry(form) };
  const models = checked(form, "model");
  if (models.length) body.models = models;
  if (of("key-limit")) body.budget = { unit: of("key-unit"), limit: of("key-limit").replace(",", "."), period: of("key-period") };
  const networks = of("key-networks").split(/[\s,;]+/).filter(Boolean);
  if (networks.length) body.networks = networks;
  return body;
}

const FIELDS = { name: "key-name", team: "key-team", expires_at: "key-term", budget: "key-limit", networks: "key-networks" };

/** Put the server's words beside the fields they are about. Returns whether all found a place. */
export function showProblems(form, error) {
  form.querySelectorAll(".field-error").forEach((line) => { line.hidden = true; });
  form.querySelectorAll("[aria-invalid]").forEach((input) => input.removeAttribute("aria-invalid"));
  const named = error.detail?.fields ?? (error.detail?.field ? { [error.detail.field]: [error.message] } : {});
  const found = Object.entries(named).map(([name, words]) => {
    const id = FIELDS[name.split(".")[0]];
    const input = id && form.querySelector(`#${id}`);
    if (!input) return false;
    const line = form.querySelector(`#${id}-error`);
    line.textContent = typeof words === "string" ? words : [].concat(...Object.values(words)).map((part) => part?.message ?? String(part)).join(" ");
    line.hidden = false;
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", line.id);
    return true;
  });
  form.querySelector("[aria-invalid]")?.focus();
  return found.length > 0 && found.every(Boolean);
}

/** `me` and `models` as the API gives them; `send(body)` and `cancel()` act. */
export function keyForm({ me, models, send, cancel }) {
  const spends = me.teams.filter((team) => team.role !== "viewer");
  const manages = me.teams.some((team) => ["admin", "owner"].includes(team.role));
  const scopes = me.scopes.filter((scope) => SCOPES[scope]).concat(me.is_staff && !me.scopes.includes("staff") ? ["staff"] : []);
  const form = h("form", { class: "key-form", "aria-label": t("New key"), novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    void send(bodyOf(form));
  } },
  field("key-name", t("Name"), text("key-name", { maxlength: "200", required: true }), t("What it is for, so that you know it again.")),
  field("key-kind", t("It acts for"), choice("key-kind", [["personal", t("Me")], ...(manages ? [["team", t("The team alone")]] : [])]), t("A team’s key goes on when you leave, and sees what the team sees.")),
  field("key-team", t("Who pays"), choice("key-team", spends.map((team) => [team.id, team.name, team.id === me.default_team.id]))),
  field("key-term", t("It ends"), choice("key-term", [["30", t("In 30 days")], ["90", t("In 90 days"), true], ["365", t("In a year")], ["0", t("Never")]])),
  h("fieldset", {}, h("legend", {}, t("At most")),
    h("div", { class: "trio" }, text("key-limit", { inputmode: "decimal", "aria-label": t("Limit"), placeholder: t("no limit") }),
      choice("key-unit", [["money", me.currency], ["tokens", t("tokens")], ["requests", t("requests")]], { "aria-label": t("Unit") }),
      choice("key-period", [["day", t("a day")], ["week", t("a week")], ["month", t("a month"), true], ["lifetime", t("for good")]], { "aria-label": t("Period") })),
    h("p", { class: "field-error small warn", id: "key-limit-error", hidden: true })),
  field("key-networks", t("Allowed addresses"), text("key-networks", { placeholder: t("any"), spellcheck: "false" }), t("Addresses or networks such as 203.0.113.7 or 2001:db8::/32, with spaces between.")),
  checks(t("It may"), "scope", scopes.map((scope) => [scope, SCOPES[scope](), scope !== "staff"])),
  checks(t("Models"), "model", models.map((model) => [model.id, model.name, false]), t("None chosen: all that you may use.")),
  h("div", { class: "actions" }, h("button", { type: "submit", class: "button primary" }, t("Make the key")), h("button", { type: "button", class: "button", onclick: cancel }, t("Cancel"))));
  return form;
}
