// What is said to people who listen: how an answer ended, once. The words themselves are read where they stand.
import { t, tn } from "../../common/js/i18n.js";

const line = document.getElementById("announcer");

const ENDS = { stopped: t("Answer stopped."), interrupted: t("Answer interrupted."), length: t("Answer cut at its limit.") };

/** Say that an answer ended, how long it is and on how many sources it rests. */
export function announce(answer) {
  if (!line) return;
  const words = answer.text.split(/\s+/).filter(Boolean).length;
  const sources = answer.sources.length;
  const parts = [
    answer.error ? t("The answer failed.") : ENDS[answer.finish_reason] ?? t("Answer complete."),
    words ? tn("{n} word.", "{n} words.", words) : "",
    sources ? tn("{n} source.", "{n} sources.", sources) : "",
  ];
  line.textContent = parts.filter(Boolean).join(" ");
}
