// One answer on the page: redrawn in parts, never as a whole, while it streams.
import { copyText, h, icon, iconButton } from "../../common/js/dom.js";
import { GrowingText } from "../../common/js/streaming.js";
import { t, tn } from "../../common/js/i18n.js";
import { told } from "../../common/js/sentences.js";
import { citedNumbers, splitSources } from "./answer.js";
import { citeButton, decorate, sourceChips, tied } from "./citations.js";
import { Feedback } from "./feedback.js";
import { quietLine } from "./quiet.js";
import { announce } from "./live.js";
import { collectionName } from "./state.js";
import { isRunning } from "./tree.js";
import { matchList } from "./matches.js";

function phaseWords(answer, asked) {
  const found = answer.sources.length;
  const words = {
    sending: t("Sending"),
    accepted: t("Starting"),
    queued: t("Waiting for a free place at the model server"),
    retrieving: asked.length ? t("Searching {where}", { where: asked.map(collectionName).join(", ") }) : t("Preparing"),
    waiting: found ? tn("The model is reading {n} passage", "The model is reading {n} passages", found) : t("The model is reading"),
    generating: "",
  };
  return words[answer.phase] ?? t("Working");
}

/** Words for how an answer ended, when it did not simply finish. */
const ENDINGS = {
  stopped: [t("You stopped this answer. What was written is kept and was charged."), t("Continue")],
  interrupted: [t("This answer was interrupted before its end. What was written is kept."), t("Continue")],
  length: [t("The answer reached its output limit."), t("Continue")],
  content_filter: [t("The provider’s content filter ended this answer."), null],
};

/** The part that failed, where the message that follows tells what it did but not which it is. */
const FAILED_PARTS = { chat_server_failed: t("The chat server failed.") };

/** Notices that concern the sources stand with them; the banner of the page speaks of the demonstration model. */
const LATER = new Set(["left_out", "history_trimmed"]);
const SHOWN_ELSEWHERE = new Set(["demonstration_model"]);

export class AnswerView {
  /** `actions`: {openSource(answer, n), again(answer), resume(answer)}; `asked`: collection ids of the turn. */
  constructor(answer, actions, asked = []) {
    Object.assign(this, { answer, actions, asked, drawn: 0, epoch: answer.epoch, feedback: null });
    this.open = (n) => actions.openSource(this.answer, n);
    this.notices = h("div", { class: "notices" });
    this.quotes = h("div", {});
    this.thinking = h("div", {});
    this.body = h("div", { class: "prose" });
    this.status = h("p", { class: "phase", role: "status" });
    this.ending = h("div", {});
    this.sources = h("div", {});
    this.footnotes = h("div", { class: "notices" });
    this.foot = h("div", { class: "answer-foot" });
    this.node = h("article", { class: "answer", "aria-label": t("Answer") },
      this.notices, this.quotes, this.thinking, this.body, this.status, this.ending, this.sources, this.footnotes, this.foot);
    this.text = new GrowingText(this.body, (root) => this.cite(root));
    this.refresh();
  }

  cite(root) {
    // Without a search, [1] is the model's own writing and stays.
    if (this.answer.sources.length || this.asked.length) decorate(root, this.answer.sources, this.open);
  }

  /** Bring the page in line with the answer after one event. */
  update(name) {
    if (name === "delta") return this.grow();
    if (name === "done" || name === "error") {
      announce(this.answer);
      return this.refresh();
    }
    this.drawHead();
    return undefined;
  }

  restart() {
    this.text.stop();
    this.text = new GrowingText(this.body, (root) => this.cite(root));
    this.drawn = 0;
    this.epoch = this.answer.epoch;
  }

  grow() {
    if (this.epoch !== this.answer.epoch) this.restart();
    const fresh = this.answer.text.slice(this.drawn);
    this.drawn = this.answer.text.length;
    if (fresh) this.text.append(fresh);
    this.drawThinking();
    this.drawPhase();
  }

  /** Draw everything from the data as it stands. */
  refresh() {
    this.drawHead();
    if (isRunning(this.answer)) {
      this.grow();
      return;
    }
    this.text.finish(this.answer.text);
    this.drawn = this.answer.text.length;
    this.drawEnding();
    this.drawSources();
    this.drawFoot();
  }

  drawHead() {
    const lines = (wanted) => this.answer.notices.filter(wanted).map((notice) => h("p", {}, notice.message));
    this.notices.replaceChildren(...lines(({ code }) => !LATER.has(code) && !SHOWN_ELSEWHERE.has(code)));
    this.footnotes.replaceChildren(...lines(({ code }) => LATER.has(code)));
    this.drawQuotes();
    this.drawThinking();
    this.drawPhase();
  }

  drawPhase(broken = 0) {
    const running = isRunning(this.answer);
    const words = broken > 1 ? t("The connection broke; picking up where it stopped") : phaseWords(this.answer, this.asked);
    this.node.toggleAttribute("aria-busy", running);
    const line = running ? words : "";
    if (this.status.textContent !== line) this.status.textContent = line;
    this.body.classList.toggle("streaming", running && Boolean(this.answer.text));
  }

  drawQuotes() {
    const { quotes, sources } = this.answer;
    if (!quotes.length) return this.quotes.replaceChildren();
    const lines = quotes.map((quote) => {
      const source = sources.find((item) => item.n === quote.n);
      return h("li", {}, h("q", {}, tied(quote.text, source ? citeButton(source, this.open) : null)));
    });
    this.quotes.replaceChildren(
      h("section", { class: "quotes", "aria-label": t("From the documents") }, h("h3", {}, t("From the documents")), h("ul", {}, lines)),
    );
    return undefined;
  }

  drawThinking() {
    const words = this.answer.reasoning;
    if (!words) return this.thinking.replaceChildren();
    if (!this.thinking.firstChild) {
      this.thinking.append(h("details", { class: "thinking" }, h("summary", {}, t("Thinking")), h("div", { class: "thought" })));
    }
    this.thinking.querySelector(".thought").textContent = words;
    return undefined;
  }

  drawEnding() {
    const { error, finish_reason: reason, state } = this.answer;
    const retry = (words, act) => h("div", { class: "actions" }, h("button", { type: "button", class: "button compact", onclick: () => act(this.answer) }, words));
    if (error) {
      const part = FAILED_PARTS[error.code] ? [h("strong", {}, FAILED_PARTS[error.code]), " "] : null;
      const id = error.request_id ? h("p", { class: "muted" }, t("Request {id}", { id: error.request_id })) : null;
      this.ending.replaceChildren(h("div", { class: "callout bad", role: "alert" }, icon("alert"),
        h("div", { class: "grow" }, h("p", {}, part, told(error.message)), id, retry(t("Try again"), this.actions.again))));
      return;
    }
    const [words, next] = ENDINGS[reason] ?? ENDINGS[state] ?? [];
    this.ending.replaceChildren(...(words
      ? [h("div", { class: "callout ending" }, h("div", { class: "grow" }, h("p", {}, words), next ? retry(next, this.actions.resume) : null))]
      : []));
  }

  drawSources() {
    const { cited, sent } = splitSources(this.answer);
    const parts = [];
    if (cited.length) parts.push(h("ul", { class: "chips", "aria-label": t("Sources of this answer") }, sourceChips(cited, this.open)));
    if (!cited.length && this.answer.sources.length && this.answer.text) {
      parts.push(h("p", { class: "muted small unmarked" }, t("The model marked no source in this answer. It was given the passages below; check them before you rely on it.")));
      parts.push(h("ul", { class: "chips" }, sourceChips(sent.slice(0, 4), this.open)));
    } else if (this.nothingFound()) {
      const where = this.asked.length ? this.asked.map(collectionName).join(", ") : t("the chosen documents");
      parts.push(h("p", { class: "nothing" }, t("Nothing on this was found in {where}. The answer rests on no document.", { where })));
    }
    const matches = matchList(this.answer, this.open);
    if (matches) parts.push(matches);
    this.sources.replaceChildren(...parts);
  }

  nothingFound() {
    const { sources, searched, error, notices } = this.answer;
    return !error && !sources.length && (searched || false) && this.asked.length > 0 && !notices.some((n) => n.code === "nothing_found");
  }

  drawFoot() {
    const { answer } = this;
    const copy = iconButton("copy", t("Copy as Markdown"), async (event) => {
      const button = event.currentTarget;
      const done = await copyText(answer.text);
      button.replaceChildren(icon(done ? "check" : "x", true));
      window.setTimeout(() => button.replaceChildren(icon("copy", true)), 1500);
    });
    const feedback = this.feedbackOf(answer);
    const buttons = [answer.text ? copy : null, iconButton("again", t("Answer again"), () => this.actions.again(answer)), ...(feedback?.buttons ?? [])];
    if (answer.sources.length) {
      const cited = citedNumbers(answer.text).length;
      const label = tn("{n} source", "{n} sources", answer.sources.length);
      buttons.push(h("button", { type: "button", class: "foot-link", onclick: () => this.open(null), title: t("{cited} cited, {sources} sent", { cited, sources: answer.sources.length }) }, icon("sources", true), label));
    }
    const held = this.foot.contains(document.activeElement) ? document.activeElement : null;
    this.foot.replaceChildren(...[h("div", { class: "foot-buttons" }, buttons), quietLine(answer), feedback?.row].filter(Boolean));
    // Whoever is at one of these buttons with the keyboard stays there.
    const label = held?.getAttribute("aria-label");
    if (held?.isConnected) held.focus();
    else if (label) this.foot.querySelector(`[aria-label="${CSS.escape(label)}"]`)?.focus();
  }

  /** One for as long as the answer is on the page, so that an opened row survives a redraw. */
  feedbackOf(answer) {
    if (!answer.text || !answer.turn_id) return null;
    const same = this.feedback?.answer.turn_id === answer.turn_id;
    this.feedback = same ? this.feedback.of(answer) : new Feedback(answer);
    return this.feedback;
  }
}
