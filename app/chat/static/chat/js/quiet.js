// The one quiet line under an answer, and what it opens into.
import { h } from "../../common/js/dom.js";
import { count, exactTime, money, moneyExact, seconds } from "../../common/js/format.js";
import { modelName } from "./state.js";

function about(answer) {
  return answer.usage?.estimated ? "≈" : "";
}

const WHY = "The server did not report its usage, so this was counted here.";

function figures(answer) {
  const { usage, timing } = answer;
  const list = [h("span", {}, modelName(answer.model))];
  if (answer.price) list.push(h("span", { title: moneyExact(answer.price) }, about(answer) + money(answer.price)));
  else if (usage) list.push(h("span", { title: moneyExact(null) }, "price unknown"));
  if (usage) {
    const [input, output] = [usage.input_tokens, usage.output_tokens].map(count);
    list.push(h("span", { title: usage.estimated ? WHY : "Input and output tokens" }, `${about(answer)}${input} in, ${output} out`));
  }
  if (timing?.ttft_ms) list.push(h("span", { class: "wide" }, `first token ${seconds(timing.ttft_ms)}`));
  if (timing?.tokens_per_second) list.push(h("span", { class: "wide" }, `${timing.tokens_per_second.toFixed(timing.tokens_per_second < 10 ? 1 : 0)} tokens/s`));
  return list;
}

const ENDS = {
  stop: "finished by itself",
  length: "reached the output limit",
  stopped: "stopped by you",
  interrupted: "interrupted",
  content_filter: "ended by the provider’s content filter",
};

function facts(answer) {
  const { usage, timing } = answer;
  const rows = [
    ["Model", modelName(answer.model)],
    ["Price", answer.price ? moneyExact(answer.price) : moneyExact(null)],
    ["Input tokens", count(usage?.input_tokens)],
    usage?.cached_input_tokens ? ["Cached input", count(usage.cached_input_tokens)] : null,
    ["Output tokens", count(usage?.output_tokens)],
    usage?.reasoning_tokens ? ["Reasoning tokens", count(usage.reasoning_tokens)] : null,
    usage?.estimated ? ["Counted", WHY] : null,
    timing?.ttft_ms ? ["First token", seconds(timing.ttft_ms)] : null,
    timing?.tokens_per_second ? ["Speed", `${timing.tokens_per_second.toFixed(1)} tokens/s`] : null,
    ["End", ENDS[answer.finish_reason] ?? answer.finish_reason ?? "unknown"],
    ["Time", exactTime(answer.created_at)],
    answer.turn_id ? ["Turn", answer.turn_id] : null,
  ].filter(Boolean);
  return h("dl", { class: "facts num" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** The stages of a turn in their order, by the server's clock. */
const STAGES = [
  ["auth_ms", "Signing in"], ["precount_ms", "Counting"], ["check_ms", "Checking the input"], ["reserve_ms", "Reserving the price"],
  ["gate_wait_ms", "Waiting in line"], ["embed_ms", "Embedding the question"], ["search_ms", "Searching"],
  ["stitch_ms", "Building the prompt"], ["quote_ms", "Quoting"], ["redact_ms", "Redacting"], ["connect_ms", "Connecting"],
  ["load_ms", "Loading the model"], ["server_queue_ms", "The server’s queue"], ["prefill_ms", "Reading the prompt"],
  ["first_token_ms", "Waiting for the first token"], ["decode_ms", "Writing"], ["retry_ms", "Trying again"],
  ["check_output_ms", "Checking the output"], ["settle_ms", "Booking"],
];
const WORTH_SHOWING_MS = 0.5;

/** [words, milliseconds] of each stage; what is too short to see is summed up, so that the parts make the whole. */
export function stagesOf(timing) {
  if (!timing?.total_ms) return [];
  const shown = STAGES.map(([key, words]) => [words, timing[key] ?? 0]).filter(([, ms]) => ms >= WORTH_SHOWING_MS);
  if (!shown.length) return [];
  const rest = timing.total_ms - shown.reduce((sum, [, ms]) => sum + ms, 0);
  return rest > 0 ? [...shown, ["Everything else", rest]] : shown;
}

/** Where the time went: a bar a stage, each beginning where the one before ended. */
function waterfall(answer) {
  const { timing } = answer;
  const stages = stagesOf(timing);
  if (!stages.length) return [];
  let before = 0;
  const rows = stages.map(([words, ms]) => {
    const bar = h("span", { class: "stage-bar" });
    const share = (part) => `${Math.min(100, (100 * part) / timing.total_ms)}%`;
    bar.style.marginLeft = share(before);
    bar.style.width = share(ms);
    before += ms;
    return h("li", {}, h("span", {}, words), h("span", { class: "stage-track" }, bar), h("span", {}, seconds(ms)));
  });
  const sum = h("li", { class: "sum" }, h("span", {}, "Whole answer"), h("span", {}), h("span", {}, seconds(timing.total_ms)));
  return [h("p", { class: "stage-title" }, "Where the time went"), h("ol", { class: "stages num" }, rows, sum), seenHere(answer)].filter(Boolean);
}

/** The first token by this browser's clock, beside the server's: the difference is the way between them. */
function seenHere({ timing, first, begun, resumed }) {
  if (!timing?.ttft_ms || !first || resumed) return null;
  return h("p", { class: "stage-title" }, `First token: ${seconds(timing.ttft_ms)} by the server’s clock, ${seconds(first - begun)} as this browser saw it.`);
}

/** The line; its details are built when first opened. */
export function quietLine(answer) {
  const details = h("details", { class: "quiet num" }, h("summary", {}, figures(answer)));
  details.addEventListener("toggle", () => details.querySelector("dl") ?? details.append(facts(answer), ...waterfall(answer)));
  return details;
}
