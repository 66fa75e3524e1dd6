// A shared conversation, read only: questions, answers, and the sources that this reader may open.
import { get, page } from "../../common/js/api.js";
import { failed, h, pageData, skeleton } from "../../common/js/dom.js";
import { ago, exactTime, wholeDay } from "../../common/js/format.js";
import { t, tn } from "../../common/js/i18n.js";
import { render } from "../../common/js/markdown.js";
import { splitSources } from "./answer.js";
import { citeButton, decorate, sourceChips, tied } from "./citations.js";
import * as sources from "./sources.js";

const thread = document.getElementById("thread");
const open = (answer) => (n) => void sources.openSource(answer, n);

function question(message) {
  return h("div", { class: "question" }, h("h2", { class: "visually-hidden" }, t("Question")),
    h("p", { class: "question-text", dir: "auto" }, message.text),
    h("div", { class: "question-foot" }, h("time", { datetime: message.created_at, title: exactTime(message.created_at) }, ago(message.created_at))));
}

function quotes(answer) {
  if (!answer.quotes.length) return null;
  const lines = answer.quotes.map((quote) => {
    const source = answer.sources.find((item) => item.n === quote.n);
    return h("li", {}, h("q", {}, tied(quote.text, source ? citeButton(source, open(answer)) : null)));
  });
  return h("section", { class: "quotes", "aria-label": t("From the documents") }, h("h3", {}, t("From the documents")), h("ul", {}, lines));
}

const ENDINGS = {
  stopped: () => t("This answer was stopped."),
  interrupted: () => t("This answer was interrupted before its end."),
  failed: () => t("This answer failed."),
};

function answer(message) {
  const body = h("div", { class: "prose" });
  body.append(render(message.text));
  decorate(body, message.sources, open(message));
  const { cited, sent } = splitSources(message);
  const chips = sourceChips(cited.length ? cited : sent.slice(0, 4), open(message));
  const hidden = message.hidden_passages;
  return h("article", { class: "answer", "aria-label": t("Answer") }, quotes(message), body,
    ENDINGS[message.state] ? h("p", { class: "muted small" }, ENDINGS[message.state]()) : null,
    chips.length ? h("ul", { class: "chips", "aria-label": t("Sources of this answer") }, chips) : null,
    hidden ? h("p", { class: "muted small hidden-passages" }, tn("{n} passage hidden: you may not read its document.", "{n} passages hidden: you may not read their documents.", hidden)) : null,
    h("p", { class: "muted small" }, message.model));
}

async function everything(path) {
  const found = [];
  let cursor = null;
  do {
    const part = await page(path, { limit: 200, cursor });
    found.push(...part.items);
    cursor = part.next;
  } while (cursor);
  return found.reverse();
}

async function begin() {
  const { share } = pageData("page");
  thread.replaceChildren(skeleton(6));
  try {
    const [head, messages] = await Promise.all([get(`shares/${share}/`), everything(`shares/${share}/messages/`)]);
    const title = head.title || t("Untitled conversation");
    document.title = `${title} · Tessera`;
    document.getElementById("bar-title").textContent = title;
    document.getElementById("shared-title").textContent = title;
    const until = head.expires_at ? ` ${t("The link ends on {date}.", { date: wholeDay(head.expires_at) })}` : "";
    document.getElementById("shared-by").textContent = t("Shared by {name} on {date}.", { name: head.shared_by, date: wholeDay(head.created_at) }) + until;
    thread.replaceChildren(...messages.map((message) => (message.role === "user" ? question(message) : answer(message))));
    if (!messages.length) thread.replaceChildren(h("p", { class: "muted" }, t("The answer is still being written. Open the link again in a moment.")));
  } catch (error) {
    if (!error.code) throw error;
    const gone = error.status === 404;
    thread.replaceChildren(failed(error, gone ? null : begin));
  }
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") sources.close();
});
void begin();
