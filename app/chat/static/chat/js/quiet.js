// The one quiet line under an answer, and what it opens into.
import { h } from "../../common/js/dom.js";
import { count, decimal, exactTime, money, moneyExact, seconds } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import { modelName } from "./state.js";

function about(answer) {
  return answer.usage?.estimated ? "≈" : "";
}

const WHY = t("The server did not report its usage, so this was counted here.");

function figures(answer) {
  const { usage, timing } = answer;
  const list = [h("span", {}, modelName(answer.model))];
  if (answer.price) list.push(h("span", { title: moneyExact(answer.price) }, about(answer) + money(answer.price)));
  else if (usage) list.push(h("span", { title: moneyExact(null) }, t("price unknown")));
  if (usage) {
    const [input, output] = [usage.input_tokens, usage.output_tokens].map(count);
    list.push(h("span", { title: usage.estimated ? WHY : t("Input and output tokens") }, t("{answer}{input} in, {output} out", { answer: about(answer), input, output })));
  }
  if (timing?.ttft_ms) list.push(h("span", { class: "wide" }, t("first token {ttft_ms}", { ttft_ms: seconds(timing.ttft_ms) })));
  if (timing?.tokens_per_second) list.push(h("span", { class: "wide" }, t("{tokens_per_second} tokens/s", { tokens_per_second: decimal(timing.tokens_per_second.toFixed(timing.tokens_per_second < 10 ? 1 : 0)) })));
  return list;
}

const ENDS = {
  stop: t("finished by itself"),
  length: t("reached the output limit"),
  stopped: t("stopped by you"),
  interrupted: t("interrupted"),
  content_filter: t("ended by the provider’s content filter"),
};

function facts(answer) {
  const { usage, timing } = answer;
  const rows = [
    [t("Model"), modelName(answer.model)],
    [t("Price"), answer.price ? moneyExact(answer.price) : moneyExact(null)],
    [t("Input tokens"), count(usage?.input_tokens)],
    usage?.cached_input_tokens ? [t("Cached input"), count(usage.cached_input_tokens)] : null,
    [t("Output tokens"), count(usage?.output_tokens)],
    usage?.reasoning_tokens ? [t("Reasoning tokens"), count(usage.reasoning_tokens)] : null,
    usage?.estimated ? [t("Counted"), WHY] : null,
    timing?.ttft_ms ? [t("First token"), seconds(timing.ttft_ms)] : null,
    timing?.tokens_per_second ? [t("Speed"), t("{tokens_per_second} tokens/s", { tokens_per_second: decimal(timing.tokens_per_second.toFixed(1)) })] : null,
    [t("End"), ENDS[answer.finish_reason] ?? answer.finish_reason ?? t("unknown")],
    [t("Time"), exactTime(answer.created_at)],
    answer.turn_id ? [t("Turn"), answer.turn_id] : null,
  ].filter(Boolean);
  return h("dl", { class: "facts num" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** The stages of a turn in their order, by the server's clock. */
const STAGES = [
  ["auth_ms", t("Signing in")], ["precount_ms", t("Counting")], ["check_ms", t("Checking the input")], ["reserve_ms", t("Reserving the price")],
  ["gate_wait_ms", t("Waiting in line")], ["embed_ms", t("Embedding the question")], ["search_ms", t("Searching")],
  ["stitch_ms", t("Building the prompt")], ["quote_ms", t("Quoting")], ["redact_ms", t("Redacting")], ["connect_ms", t("Connecting")],
  ["load_ms", t("Loading the model")], ["server_queue_ms", t("The server’s queue")], ["prefill_ms", t("Reading the prompt")],
  ["first_token_ms", t("Waiting for the first token")], ["decode_ms", t("Writing")], ["retry_ms", t("Trying again")],
  ["check_output_ms", t("Checking the output")], ["settle_ms", t("Booking")],
];
const WORTH_SHOWING_MS = 0.5;

/** [words, milliseconds] of each stage; what is too short to see is summed up, so that the parts make the whole. */
export function stagesOf(timing) {
  if (!timing?.total_ms) return [];
  const shown = STAGES.map(([key, words]) => [words, timing[key] ?? 0]).filter(([, ms]) => ms >= WORTH_SHOWING_MS);
  if (!shown.length) return [];
  const rest = timing.total_ms - shown.reduce((sum, [, ms]) => sum + ms, 0);
  return rest > 0 ? [...shown, [t("Everything else"), rest]] : shown;
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
  const sum = h("li", { class: "sum" }, h("span", {}, t("Whole answer")), h("span", {}), h("span", {}, seconds(timing.total_ms)));
  return [h("p", { class: "stage-title" }, t("Where the time went")), h("ol", { class: "stages num" }, rows, sum), seenHere(answer)].filter(Boolean);
}

/** The first token by this browser's clock, beside the server's: the difference is the way between them. */
function seenHere({ timing, first, begun, resumed }) {
  if (!timing?.ttft_ms || !first || resumed) return null;
  return h("p", { class: "stage-title" }, t("First token: {ttft_ms} by the server’s clock, {begun} as this browser saw it.", { ttft_ms: seconds(timing.ttft_ms), begun: seconds(first - begun) }));
}

/** The line; its details are built when first opened. */
export function quietLine(answer) {
  const details = h("details", { class: "quiet num" }, h("summary", {}, figures(answer)));
  details.addEventListener("toggle", () => details.querySelector("dl") ?? details.append(facts(answer), ...waterfall(answer)));
  return details;
}
