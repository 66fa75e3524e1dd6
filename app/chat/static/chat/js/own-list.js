// What lists of own things share: the form behind a button, a secret that is shown once, the question before removing.
import { copyText, h, icon } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";

/** Let `opener` open the form that `make()` builds in `box`, and close it again. Returns what closes it. */
export function formBehind(opener, box, make) {
  const shut = () => {
    box.hidden = true;
    box.replaceChildren();
    opener.setAttribute("aria-expanded", "false");
    opener.focus();
  };
  opener.addEventListener("click", () => {
    if (!box.hidden) return shut();
    box.replaceChildren(make());
    box.hidden = false;
    opener.setAttribute("aria-expanded", "true");
    return box.querySelector("input").focus();
  });
  return shut;
}

/** Copy and say so on the button itself. */
export function copyButton(text, label) {
  const button = h("button", { type: "button", class: "button compact", onclick: async () => {
    const done = await copyText(text());
    button.replaceChildren(icon(done ? "check" : "x", true), done ? t("Copied") : t("Copy it by hand"));
    window.setTimeout(() => button.replaceChildren(icon("copy", true), label), 2000);
  } }, icon("copy", true), label);
  return button;
}

/** Show `secret` in `box` this once, with `more` below it; afterwards the focus goes to `next`. */
export function shownOnce(box, { heading, title, words, secret, copy, next, more = [] }) {
  const kept = () => {
    box.replaceChildren();
    next.focus();
  };
  box.replaceChildren(h("section", { class: "issued", tabindex: "-1", "aria-label": title }, h(heading, {}, title), h("p", {}, words),
    h("pre", { tabindex: "0" }, h("code", { class: "plain-key" }, secret)),
    h("div", { class: "example-head" }, copyButton(() => secret, copy), h("button", { type: "button", class: "button compact", onclick: kept }, t("I have kept it"))),
    more));
  box.firstChild.focus();
}

/** Ask in the place of `node`: `act` is what `yes` says, `keep` leaves all as it is. */
export function ask(node, { words, yes, act, keep }) {
  const no = h("button", { type: "button", class: "button compact", onclick: keep }, t("Keep"));
  node.replaceChildren(h("p", { class: "grow" }, words), h("button", { type: "button", class: "button compact danger", onclick: () => void act() }, yes), no);
  no.focus();
}
