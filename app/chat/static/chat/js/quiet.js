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
    ["Output tokens", count(usage?.output_tokens)],
    usage?.estimated ? ["Counted", WHY] : null,
    timing?.ttft_ms ? ["First token", seconds(timing.ttft_ms)] : null,
    timing?.total_ms ? ["Whole answer", seconds(timing.total_ms)] : null,
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
  ["check_output_ms", "Checking the output"], ["settle_ms", "Booking"], ["other_ms", "Everything else"],
];
const WORTH_SHOWING_MS = 0.5;

/** Where the time went: a bar a stage, each beginning where the one before ended. */
function waterfall(timing) {
  const stages = STAGES.filter(([key]) => timing?.[key] >= WORTH_SHOWING_MS);
  if (!stages.length || !timing.total_ms) return [];
  let before = 0;
  const rows = stages.map(([key, words]) => {
    const bar = h("span", { class: "stage-bar" });
    const share = (ms) => `${Math.min(100, (100 * ms) / timing.total_ms)}%`;
    bar.style.marginLeft = share(before);
    bar.style.width = share(timing[key]);
    before += timing[key];
    return h("li", {}, h("span", {}, words), h("span", { class: "stage-track" }, bar), h("span", {}, seconds(timing[key])));
  });
  return [h("p", { class: "stage-title" }, "Where the time went"), h("ol", { class: "stages num" }, rows)];
}

/** The line; its details are built when first opened. */
export function quietLine(answer) {
  const details = h("details", { class: "quiet num" }, h("summary", {}, figures(answer)));
  details.addEventListener("toggle", () => details.querySelector("dl") ?? details.append(facts(answer), ...waterfall(answer.timing)));
  return details;
}
