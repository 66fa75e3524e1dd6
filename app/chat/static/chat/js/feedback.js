// What a reader thinks of an answer: a thumb, and for a bad one a reason, in a row under the answer.
import { ApiError, put } from "../../common/js/api.js";
import { h, icon, iconButton } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";

const REASONS = [
  ["wrong", t("Not correct")], ["incomplete", t("Leaves something out")], ["sources", t("Sources do not fit")],
  ["unclear", t("Hard to follow")], ["other", t("Something else")],
];

/** Two thumbs and the row that a thumb opens. `answer.feedback` is {rating, reason, comment} or null. */
export class Feedback {
  constructor(answer) {
    this.answer = answer;
    this.good = this.thumb("good", t("Good answer"));
    this.bad = this.thumb("bad", t("Bad answer"));
    this.row = h("div", { class: "feedback", hidden: true });
    this.draw();
  }

  get buttons() {
    return [this.good, this.bad];
  }

  thumb(rating, label) {
    return iconButton(rating, label, () => void this.rate(this.answer.feedback?.rating === rating ? null : rating), { class: "thumb" });
  }

  /** The same answer as the server tells it; a rating given meanwhile stands. */
  of(answer) {
    answer.feedback ??= this.answer.feedback;
    this.answer = answer;
    this.draw();
    return this;
  }

  draw() {
    const rating = this.answer.feedback?.rating ?? null;
    this.good.setAttribute("aria-pressed", String(rating === "good"));
    this.bad.setAttribute("aria-pressed", String(rating === "bad"));
  }

  async rate(rating) {
    const before = this.answer.feedback;
    this.answer.feedback = rating && { rating, reason: "", comment: "" };
    this.draw();
    if (await this.keep(before)) this.open(rating);
  }

  /** PUT what stands; on a refusal take it back and say why. */
  async keep(before) {
    const { rating = null, reason = "", comment = "" } = this.answer.feedback ?? {};
    try {
      await put(`turns/${this.answer.turn_id}/feedback/`, { rating, reason, comment });
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.answer.feedback = before;
      this.draw();
      this.say(error.message);
      return false;
    }
  }

  say(words) {
    this.row.replaceChildren(h("p", { class: "small muted", role: "status" }, words));
    this.row.hidden = false;
  }

  open(rating) {
    if (!rating) {
      this.row.hidden = true;
      return;
    }
    if (rating === "good") {
      this.say(t("Thank you."));
      return;
    }
    const chosen = (reason) => this.answer.feedback?.reason === reason;
    const reasons = REASONS.map(([reason, words]) => h("button", { type: "button", class: "chip reason", "aria-pressed": "false", onclick: async ({ currentTarget }) => {
      this.answer.feedback = { ...this.answer.feedback, reason: chosen(reason) ? "" : reason };
      for (const other of this.row.querySelectorAll(".reason")) other.setAttribute("aria-pressed", String(other === currentTarget && chosen(reason)));
      await this.keep(this.answer.feedback);
    } }, words));
    const box = h("input", { class: "input", maxlength: "2000", "aria-label": t("What was wrong with it"), placeholder: t("Say more, if you like") });
    const form = h("form", { class: "feedback-more", onsubmit: async (event) => {
      event.preventDefault();
      this.answer.feedback = { ...this.answer.feedback, comment: box.value.trim() };
      if (await this.keep(this.answer.feedback)) this.say(t("Thank you. It is kept with the answer."));
    } }, box, h("button", { type: "submit", class: "button compact" }, icon("check", true), t("Done")));
    this.row.replaceChildren(h("p", { class: "small muted" }, t("What was wrong?")), h("div", { class: "reasons", role: "group", "aria-label": t("What was wrong") }, reasons), form);
    this.row.hidden = false;
  }
}
