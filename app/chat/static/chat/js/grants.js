// Who may use a collection: the teams and people it is shared with, and what each may do.
import { get, put } from "../../common/js/api.js";
import { h, iconButton, report, skeleton } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";
import { choice, field, openPanel } from "../../common/js/panel.js";

const SHORT = [["read", t("reads")], ["write", t("reads and adds")], ["manage", t("manages")]];
const RIGHTS = [["read", t("reads and asks")], ["write", t("also adds and deletes documents")], ["manage", t("also shares, changes and erases it")]];

/** `teams`: those of the person, each {id, name, is_personal}. */
export async function openGrants(collection, teams, anchor) {
  const path = `collections/${collection.id}/grants/`;
  const owner = `team:${collection.team?.id}`;
  const list = h("ul", { class: "grants" }, skeleton(3));
  const problem = h("div", { hidden: true });
  const form = h("form", { class: "panel-form" });
  let grants = [];

  const set = async (body) => {
    report(problem, null);
    try {
      ({ items: grants } = await put(path, body));
    } catch (error) {
      report(problem, error);
      draw();
      return false;
    }
    draw();
    return true;
  };

  const row = ({ principal, name, verb }) => {
    const shown = name ?? t("somebody who is no longer here");
    const kind = principal === owner ? t("owner and payer") : principal.startsWith("team:") ? t("team") : t("person");
    const right = choice(`right-${principal.replace(":", "-")}`, SHORT, verb, { "aria-label": t("What {name} may do", { name: shown }), disabled: principal === owner,
      onchange: (event) => void set({ principal, verb: event.target.value }) });
    return h("li", { class: "grant" }, h("div", { class: "grow" }, h("p", { class: "who" }, shown), h("p", { class: "muted small" }, kind)), right,
      principal === owner ? null : iconButton("x", t("Take access away from {name}", { name: shown }), () => void set({ principal, verb: null })));
  };

  const draw = () => {
    list.replaceChildren(...grants.map(row));
    const held = new Set(grants.map(({ principal }) => principal));
    const free = teams.filter((team) => !team.is_personal && !held.has(`team:${team.id}`)).map((team) => [`team:${team.id}`, team.name]);
    const whom = choice("share-with", [...free, ["", t("A person of my teams…")]], free[0]?.[0] ?? "");
    const email = h("input", { class: "input", id: "share-email", type: "email", maxlength: "254", autocomplete: "off" });
    const person = field(t("E-mail of the person"), email);
    const right = choice("share-right", RIGHTS, "read");
    const follow = () => {
      person.hidden = Boolean(whom.value);
      email.required = !whom.value;
    };
    whom.addEventListener("change", follow);
    follow();
    form.replaceChildren(field(t("Share with"), whom), person, field(t("What they may do"), right), h("div", { class: "actions" }, h("button", { type: "submit", class: "button primary" }, t("Share"))));
    form.onsubmit = (event) => {
      event.preventDefault();
      const verb = right.value;
      const mail = email.value.trim();
      void set(whom.value ? { principal: whom.value, verb } : { email: mail, verb }).then((done) => {
        // What was refused is still there to be mended.
        if (!done) Object.assign(form.querySelector("#share-email"), { value: mail });
      });
    };
  };

  openPanel(t("Share “{name}”", { name: collection.name }), anchor, [
    h("p", { class: "small muted" }, t("Of a team that it is shared with, everyone reads; members also add, admins and owners also change it, where the team was given that.")), list, problem, form]);
  try {
    ({ items: grants } = await get(path));
    draw();
  } catch (error) {
    list.replaceChildren();
    report(problem, error);
  }
}
