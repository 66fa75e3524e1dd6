// Following one turn from the first byte to its end, over as many connections as that takes.
import { ApiError, open } from "../../common/js/api.js";
import { events, isAfter } from "../../common/js/sse.js";
import { t } from "../../common/js/i18n.js";

const PAUSES_MS = [300, 1000, 2000, 4000, 8000];
const TRIES = 60;

function pause(ms, signal) {
  return new Promise((resolve) => {
    const finish = () => {
      window.clearTimeout(timer);
      window.removeEventListener("online", finish);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = window.setTimeout(finish, ms);
    window.addEventListener("online", finish);
    signal.addEventListener("abort", finish);
  });
}

/**
 * A turn being followed. `onEvent(name, data)` says true when the turn has ended; `onBroken(tries)` tells of a
 * lost line (0 when it is back). Each event reaches onEvent once, whatever the line did in between.
 */
export class TurnFollower {
  constructor({ conversationId, body = null, key = null, turnId = null, onEvent, onBroken = () => {} }) {
    Object.assign(this, { conversationId, body, key, turnId, onEvent, onBroken });
    this.last = null;
    this.abort = new AbortController();
  }

  /** Stop listening; the turn itself goes on at the server. */
  leave() {
    this.abort.abort();
  }

  async connect() {
    const { signal } = this.abort;
    const accept = "text/event-stream";
    if (this.turnId) return open("GET", `turns/${this.turnId}/events/`, { accept, signal, lastEventId: this.last });
    // The same key and body again gives the same turn, from its first event.
    const response = await open("POST", `conversations/${this.conversationId}/turns/`, { accept, signal, body: this.body, key: this.key });
    // Known before the first event, so that a line that breaks at once is taken up again, not asked again.
    this.turnId = /turns\/([^/]+)\/$/.exec(response.headers.get("Location") ?? "")?.[1] ?? null;
    return response;
  }

  /** Resolves when the turn ended or was left; throws ApiError when it was refused or can no longer be followed. */
  async run() {
    let response = await this.connect();
    for (let tries = 0; ; ) {
      const before = this.last;
      if (await this.drain(response)) return;
      if (this.abort.signal.aborted) return;
      tries = this.last === before ? tries + 1 : 1;
      response = await this.reconnect(tries);
      if (!response) return;
    }
  }

  async drain(response) {
    try {
      for await (const event of events(response)) {
        if (this.take(event)) return true;
      }
    } catch (error) {
      // Reading a broken body throws TypeError; the line is then opened anew.
      if (error.name !== "AbortError" && !(error instanceof TypeError)) throw error;
    }
    return false;
  }

  take({ event, data, id }) {
    if (event !== "turn" && !isAfter(id, this.last)) return false;
    if (id !== null) this.last = id;
    const parsed = JSON.parse(data);
    if (event === "turn") this.turnId = parsed.turn_id;
    this.onBroken(0);
    return this.onEvent(event, parsed);
  }

  async reconnect(tries) {
    for (let attempt = tries; attempt <= TRIES; attempt += 1) {
      this.onBroken(attempt);
      await pause(PAUSES_MS[Math.min(attempt - 1, PAUSES_MS.length - 1)], this.abort.signal);
      if (this.abort.signal.aborted) return null;
      try {
        return await this.connect();
      } catch (error) {
        if (error.name === "AbortError") return null;
        if (!(error instanceof ApiError) || !(error.code === "offline" || error.status >= 500)) throw error;
      }
    }
    throw new ApiError({
      code: "offline",
      message: t("The connection to the answer was lost and did not come back. Reload the page to see what was written."),
      retryable: true,
    });
  }
}
