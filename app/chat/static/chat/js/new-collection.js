// The form that makes a collection.
import { post } from "../../common/js/api.js";
import { h } from "../../common/js/dom.js";

const form = document.getElementById("collection-form");
const nameBox = document.getElementById("collection-name");
const teamBox = document.getElementById("collection-team");

export function showForm(open) {
  form.hidden = !open;
  document.getElementById("new-collection").hidden = open;
  if (open) nameBox.focus();
}

/** The teams that may own one: those the person looks after. */
export function offerTeams(me) {
  const owned = me.teams.filter((team) => ["admin", "owner"].includes(team.role));
  teamBox.replaceChildren(...owned.map((team) => h("option", { value: team.id }, team.name)));
  teamBox.value = owned.find((team) => team.id === me.default_team?.id)?.id ?? owned[0]?.id ?? "";
  document.getElementById("collection-team-field").hidden = owned.length < 2;
}

/** `made(collection)` gets the new one, `failed(error)` why there is none; failed(null) takes that back. */
export function startForm({ made, failed }) {
  document.getElementById("new-collection").addEventListener("click", () => showForm(true));
  document.getElementById("collection-cancel").addEventListener("click", () => showForm(false));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    failed(null);
    try {
      const item = await post("collections/", { name: nameBox.value.trim(), ...(teamBox.value ? { team: teamBox.value } : {}) });
      nameBox.value = "";
      showForm(false);
      made(item);
    } catch (error) {
      failed(error);
    }
  });
}
