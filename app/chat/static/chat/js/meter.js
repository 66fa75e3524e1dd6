// What the draft will cost, before it is sent. One line of fixed height; its parts open above it.
import { post } from "../../common/js/api.js";
import { h } from "../../common/js/dom.js";
import { count, day, exactTime, money, moneyExact, moneyRange, quantity, seconds } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import * as attach from "./attach.js";
import { editedQuestion } from "./composer.js";
import { emit, on, state } from "./state.js";

const line = document.getElementById("meter-line");
const parts = document.getElementById("meter-parts");
const toggle = document.getElementById("meter-toggle");
const WAIT_MS = 300;
let timer = 0;
let running = null;

function asMoney(value, currency) {
  return value && typeof value === "object" ? value : { amount: value, currency };
}

function amount(limit, name, currency) {
  return limit.unit === "money" ? money(asMoney(limit[name], currency)) : quantity(count(limit[name]), limit.unit);
}

function currencyOf(estimate) {
  return estimate.price?.high?.currency ?? state.me?.currency ?? "EUR";
}

/** The limit that will bite first: of money the one with the least left, else the one nearest to its end. */
function tightest(limits, currency) {
  const number = (value) => Number(asMoney(value, currency).amount);
  const share = (limit) => number(limit.remaining) / number(limit.limit);
  const known = (limits ?? []).filter((limit) => limit.limit !== null);
  const inMoney = known.filter((limit) => limit.unit === "money").sort((a, b) => number(a.remaining) - number(b.remaining));
  const empty = known.find((limit) => limit.unit !== "money" && share(limit) < 0.05);
  return empty ?? inMoney[0] ?? known.sort((a, b) => share(a) - share(b))[0] ?? null;
}

/** Those limits that have no name of their own are called by what they cover. */
const COVERS = { "this installation": t("this installation"), "your allowance": t("your allowance") };

function nameOf(limit) {
  return COVERS[limit.name] ?? limit.name;
}

function capital(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function remaining(limit, currency) {
  if (!limit) return null;
  const until = limit.resets_at ? t("; resets {resets_at}", { resets_at: exactTime(limit.resets_at) }) : "";
  return h("span", { class: "wide", title: t("{limit}: {currency} of {currency2} left{until}", { limit: capital(nameOf(limit)), currency: amount(limit, "remaining", currency), currency2: amount(limit, "limit", currency), until }) },
    t("{currency} left", { currency: amount(limit, "remaining", currency) }));
}

function refusal(limit, currency) {
  if (!limit) return t("This does not fit a limit. The server will say which one.");
  const reset = limit.resets_at ? t("; resets on {resets_at}", { resets_at: day(limit.resets_at) }) : "";
  return t("Not enough left: {currency} of {currency2} ({limit}{reset})", { currency: amount(limit, "remaining", currency), currency2: amount(limit, "limit", currency), limit: nameOf(limit), reset });
}

function exactness(estimate) {
  const { kind, error_pct: band } = estimate.accuracy ?? {};
  const by = estimate.counted_by === "server" ? t("Counted by the model’s own server") : t("Counted with {tokenizer}", { tokenizer: estimate.tokenizer });
  return kind === "exact" ? t("{by}: exact, but for passages that a search may add.", { by }) : t("{by}; the bill may differ by {band} %.", { by, band: band ?? "?" });
}

function drawLine(estimate) {
  const tokens = estimate.input_tokens.total;
  const about = estimate.accuracy?.kind === "exact" ? "" : "≈";
  const why = exactness(estimate);
  const currency = currencyOf(estimate);
  const tight = tightest(estimate.limits, currency);
  line.className = "meter-line num";
  if (estimate.verdict === "refused") {
    line.classList.add("bad");
    const words = estimate.reason?.message ?? refusal(tight, currency);
    line.replaceChildren(h("span", { title: words }, words));
    return;
  }
  line.replaceChildren(...[
    h("span", { title: why }, t("{about}{expected} tokens in", { about, expected: count(tokens.expected) }), about ? h("span", { class: "wide muted" }, ` ±${estimate.accuracy.error_pct} %`) : null),
    h("span", { class: "wide", title: t("Output tokens at most") }, t("≤ {n} out", { n: count(estimate.max_output_tokens) })),
    h("span", { class: "price", title: estimate.price ? t("At most {high}", { high: moneyExact(estimate.price.high) }) : moneyExact(null) },
      estimate.price ? moneyRange(estimate.price.low, estimate.price.high) : t("price unknown")),
    estimate.time?.ttft_ms ? h("span", { class: "wide", title: t("First token, by the last answers: half came sooner, half later") }, t("begins in ≈{p50}", { p50: seconds(estimate.time.ttft_ms.p50) })) : null,
    remaining(tight, currency),
    estimate.verdict === "capped" ? h("span", { class: "warn" }, t("answer will be shortened")) : null,
  ].filter(Boolean));
}

function row(name, value, title = null) {
  return [h("dt", {}, name), h("dd", title ? { title } : {}, value)];
}

function drawParts(estimate) {
  const tokens = estimate.input_tokens;
  const range = (part) => {
    if (typeof part !== "object" || part === null) return count(part);
    return part.expected === part.max ? count(part.max) : t("{expected}, at most {max}", { expected: count(part.expected), max: count(part.max) });
  };
  const currency = currencyOf(estimate);
  const left = estimate.left_out?.length ? row(t("Left out"), estimate.left_out.join("; ")) : null;
  parts.replaceChildren(h("dl", { class: "facts num" },
    row(t("Your question"), count(tokens.draft)), row(t("Earlier in this conversation"), count(tokens.history)),
    row(t("Passages from documents"), range(tokens.retrieved)), row(t("Instructions"), count(tokens.system)),
    tokens.attachments ? row(t("Attachments"), count(tokens.attachments), estimate.attachments?.map((item) => item.name).join("\n")) : null,
    row(t("Whole input"), range(tokens.total)), row(t("Answer, at most"), count(estimate.max_output_tokens)), left,
    row(t("Count"), estimate.accuracy?.kind === "exact" ? t("exact") : t("estimated, ±{error_pct} %", { error_pct: estimate.accuracy?.error_pct ?? "?" }), exactness(estimate)),
    estimate.price ? row(t("Price expected"), money(estimate.price.expected), moneyExact(estimate.price.expected)) : row(t("Price"), t("unknown: no price is set for this model")),
    estimate.price ? row(t("Price at most"), money(estimate.price.high), moneyExact(estimate.price.high)) : null,
    estimate.time?.ttft_ms ? row(t("First token"), t("usually {p50}", { p50: seconds(estimate.time.ttft_ms.p50) })) : null,
    (estimate.limits ?? []).map((limit) => row(capital(nameOf(limit)), t("{currency} of {currency2} left", { currency: amount(limit, "remaining", currency), currency2: amount(limit, "limit", currency) }), limit.resets_at ? t("Resets {resets_at}", { resets_at: exactTime(limit.resets_at) }) : null)),
  ));
}

function quiet(words, problem = false) {
  line.className = problem ? "meter-line problem" : "meter-line";
  line.replaceChildren(h("span", { title: words }, words));
  parts.hidden = true;
  toggle.hidden = true;
  toggle.setAttribute("aria-expanded", "false");
}

async function precount(text) {
  running?.abort();
  running = new AbortController();
  const body = { model: state.choice.model, text, collections: state.choice.collections };
  if (state.conversation) {
    body.conversation = state.conversation.id;
    body.parent = state.messages.get(editedQuestion() ? editedQuestion().parent_id : state.leaf)?.turn_id ?? null;
    if (attach.named().length) body.attachments = attach.named();
  }
  else {
    if (state.choice.team) body.team = state.choice.team;
    if (state.choice.assistant) body.assistant = state.choice.assistant;
  }
  try {
    const estimate = await post("precount/", body, { signal: running.signal });
    drawLine(estimate);
    drawParts(estimate);
    toggle.hidden = false;
    emit("estimate", estimate);
  } catch (error) {
    if (error.name === "AbortError") return;
    quiet(error.code === "offline" ? t("The cost cannot be counted while the server does not answer.") : error.message, true);
  }
}

export function update(text) {
  window.clearTimeout(timer);
  if (!text.trim() && !attach.named().length) {
    running?.abort();
    quiet(state.models.length ? t("The cost appears here as you type.") : t("No model is connected; an administrator can add one."));
    return;
  }
  if (state.choice.model) timer = window.setTimeout(() => void precount(text), WAIT_MS);
}

export function start() {
  const box = document.getElementById("composer-text");
  on("draft", update);
  on("choice", () => update(box.value));
  on("attachments", () => update(box.value));
  toggle.addEventListener("click", () => {
    parts.hidden = !parts.hidden;
    toggle.setAttribute("aria-expanded", String(!parts.hidden));
  });
  const close = () => {
    parts.hidden = true;
    toggle.setAttribute("aria-expanded", "false");
  };
  document.addEventListener("pointerdown", (event) => {
    if (!parts.hidden && !event.target.closest("#meter-parts, #meter-toggle")) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || parts.hidden) return;
    event.preventDefault();
    close();
  });
}
