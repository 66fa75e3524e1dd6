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

/** The line; its details are built when first opened. */
export function quietLine(answer) {
  const details = h("details", { class: "quiet num" }, h("summary", {}, figures(answer)));
  details.addEventListener("toggle", () => details.querySelector("dl") ?? details.append(facts(answer)));
  return details;
}
