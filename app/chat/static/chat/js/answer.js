// One answer as data: what the events of a turn make of it. No DOM here.
import { told } from "../../common/js/sentences.js";

export function newAnswer({ id, model, parentId }) {
  return {
    id, model, parent_id: parentId, role: "assistant", turn_id: null, text: "", reasoning: "", state: "running", phase: "sending",
    finish_reason: null, usage: null, price: null, timing: null, sources: [], quotes: [], notices: [], error: null,
    created_at: new Date().toISOString(), begun: performance.now(), first: null,
    /** Grows whenever the text begins anew, so that a view knows to drop what it drew. */
    epoch: 0,
  };
}

export function asNotice(notice) {
  return typeof notice === "string" ? { code: "notice", message: told(notice) } : { ...notice, message: told(notice.message) };
}

const steps = {
  turn(answer, data) {
    // A server that can no longer replay from where we stood begins again, so what was drawn is dropped.
    Object.assign(answer, { turn_id: data.turn_id, text: "", reasoning: "", usage: null, price: null });
    answer.epoch += 1;
    answer.model = data.model ?? answer.model;
    answer.notices = (data.notices ?? []).map(asNotice);
    answer.phase = "accepted";
  },
  notice(answer, data) {
    answer.notices.push(asNotice(data));
  },
  status(answer, data) {
    answer.phase = data.phase;
  },
  sources(answer, data) {
    answer.sources = data.items ?? [];
    answer.searched = true;
  },
  matches(answer, data) {
    answer.matches = data.items ?? [];
  },
  quotes(answer, data) {
    answer.quotes = data.items ?? [];
  },
  delta(answer, data) {
    answer.first ??= performance.now();
    answer.phase = "generating";
    // A server without the events any more sends the stored text as one piece.
    if (data.replace) Object.assign(answer, { text: "", reasoning: "", epoch: answer.epoch + 1 });
    if (data.text) answer.text += data.text;
    if (data.reasoning) answer.reasoning += data.reasoning;
  },
  usage(answer, data) {
    answer.usage = data;
    answer.price = data.price ?? null;
  },
  done(answer, data) {
    answer.finish_reason = data.finish_reason;
    answer.state = ["stopped", "interrupted"].includes(data.finish_reason) ? data.finish_reason : "completed";
    answer.timing = data.timing ?? measured(answer);
  },
  error(answer, data) {
    answer.error = data.error ?? data;
    answer.state = "failed";
    answer.timing = measured(answer);
  },
};

/** Times as this browser saw them, until the server's own are known. */
function measured(answer) {
  if (answer.first === null || answer.resumed) return null;
  const now = performance.now();
  const writing = (now - answer.first) / 1000;
  const tokens = answer.usage?.output_tokens ?? null;
  return {
    ttft_ms: answer.first - answer.begun,
    total_ms: now - answer.begun,
    tokens_per_second: tokens && writing > 0.05 ? tokens / writing : null,
  };
}

/** Apply one event; says whether the turn ended. Events this page does not know are ignored, as the API allows. */
export function apply(answer, name, data) {
  steps[name]?.(answer, data);
  return name === "done" || name === "error";
}

const MARKER = /\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/g;

/** Numbers of the sources that the text marks, in order of appearance. */
export function citedNumbers(text) {
  const found = new Set();
  for (const match of text.matchAll(MARKER)) match[1].split(",").forEach((n) => found.add(Number(n)));
  return [...found];
}

/** Sources in reading order: cited first, then those that were only sent. */
export function splitSources(answer) {
  const cited = citedNumbers(answer.text);
  const byNumber = new Map(answer.sources.map((source) => [source.n, source]));
  return {
    cited: cited.map((n) => byNumber.get(n)).filter(Boolean),
    sent: answer.sources.filter((source) => !cited.includes(source.n)),
  };
}
