import { t } from "../../common/js/i18n.js";
/* Passkeys: asks the browser for one and sends what it gives with the form it stands in.

A form says with data-passkey whether a key is made ("create") or asked for ("get"); the options lie in the page as
#passkey-options, or are fetched from data-passkey-url when the button is pressed. */

const WORDS = {
  NotAllowedError: t("Nothing was chosen, or it took too long. Try again when you are ready."),
  InvalidStateError: t("This device holds a passkey of your account already."),
  SecurityError: t("Browsers allow passkeys only over https and on localhost, under the name they were made for."),
};

async function optionsOf(form) {
  const url = form.dataset.passkeyUrl;
  if (!url) return JSON.parse(document.getElementById("passkey-options").textContent);
  const answer = await fetch(url, { headers: { Accept: "application/json", "X-Requested-With": "XMLHttpRequest" } });
  if (!answer.ok) throw new Error(t("The server did not answer as expected. Wait a minute and try again."));
  return answer.json();
}

async function made(options) {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options.publicKey);
  // A key that signs in by itself has to be kept by the device and unlocked by the person.
  publicKey.authenticatorSelection = {
    ...publicKey.authenticatorSelection,
    residentKey: "required",
    requireResidentKey: true,
    userVerification: "required",
  };
  return navigator.credentials.create({ publicKey });
}

async function found(options) {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey);
  return navigator.credentials.get({ publicKey });
}

async function run(form, problem) {
  problem.hidden = true;
  try {
    const options = await optionsOf(form);
    const key = form.dataset.passkey === "create" ? await made(options.creation_options) : await found(options.request_options);
    form.elements.credential.value = JSON.stringify(key.toJSON());
    form.submit();
  } catch (error) {
    problem.textContent = WORDS[error.name] ?? error.message;
    problem.hidden = false;
  }
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  const start = form.querySelector("[data-passkey-start]");
  const problem = form.querySelector("[data-passkey-problem]");
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) {
    start.disabled = true;
    problem.textContent = t("This browser has no passkeys; a newer one has.");
    problem.hidden = false;
  } else {
    start.addEventListener("click", () => run(form, problem));
  }
}
