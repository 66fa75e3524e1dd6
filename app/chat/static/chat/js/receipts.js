// What was taken away, said where people see it, with the number under which it can be looked up.
import { get, open } from "../../common/js/api.js";
import { h, icon, iconButton } from "../../common/js/dom.js";
import { t, tn } from "../../common/js/i18n.js";

const GONE = {
  documents: (n) => tn("{n} document", "{n} documents", n), pages: (n) => tn("{n} page", "{n} pages", n), chunks: (n) => tn("{n} chunk", "{n} chunks", n),
  vectors: (n) => tn("{n} vector", "{n} vectors", n), drafts: (n) => tn("{n} draft", "{n} drafts", n), originals: (n) => tn("{n} original", "{n} originals", n),
  passages: (n) => tn("{n} passage in answers", "{n} passages in answers", n),
};

/** DELETE `path`; gives the receipt. Throws ApiError. */
export async function removeWithReceipt(path) {
  const answer = await open("DELETE", path);
  const number = answer.headers.get("X-Tessera-Receipt");
  // What is gone is gone, whether or not its receipt can be read now.
  return number ? get(`receipts/${number}/`).catch(() => ({ number, counts: {} })) : null;
}

/** Show in `box` what happened and its receipt, until it is put away. */
export function showReceipt(box, words, receipt) {
  const counts = Object.entries(GONE).filter(([name]) => receipt?.counts[name]).map(([name, words]) => words(receipt.counts[name]));
  const away = () => {
    box.replaceChildren();
    box.hidden = true;
  };
  box.hidden = false;
  box.replaceChildren(h("div", { class: "callout", role: "status" }, icon("receipt"),
    h("div", { class: "grow" }, h("p", {}, words),
      receipt ? h("p", { class: "muted num" }, [t("Receipt {number}", { number: receipt.number }), counts.length ? t("gone: {counts}", { counts: counts.join(", ") }) : null].filter(Boolean).join(" · ")) : null),
    iconButton("x", t("Put this away"), away)));
}
