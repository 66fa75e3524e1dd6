// The links that this person made: copy, look, take back.
import { get } from "../../common/js/api.js";
import { failed, h, skeleton } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";
import { linkRow } from "./share-panel.js";

const box = document.getElementById("shares");
const said = document.getElementById("said");

function draw(items) {
  if (!items.length) {
    box.replaceChildren(h("p", { class: "muted" }, t("You have shared nothing. Open a conversation and choose Share in its menu.")));
    return;
  }
  const removed = (share) => {
    said.textContent = t("The link was taken back. Whoever opens it finds nothing.");
    draw(items.filter((item) => item.id !== share.id));
  };
  box.replaceChildren(h("ol", { class: "shares" }, items.map((share) => linkRow(share, removed, { titled: true }))));
}

async function begin() {
  box.replaceChildren(skeleton(4));
  try {
    draw((await get("shares/")).items);
  } catch (error) {
    box.replaceChildren(failed(error, begin));
  }
}

void begin();
