// Server-sent events over fetch: unlike EventSource it can POST, and it tells a refusal from a broken line.

/** Feed text as it comes, get whole events {event, data, id}. Fields as in the HTML standard. */
export class EventParser {
  constructor() {
    this.rest = "";
    this.clear();
  }

  clear() {
    this.event = "message";
    this.data = [];
    this.id = null;
  }

  push(text) {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    const events = [];
    for (const line of lines) {
      if (line !== "") this.field(line);
      else if (this.data.length) {
        events.push({ event: this.event, data: this.data.join("\n"), id: this.id });
        this.clear();
      } else this.clear();
    }
    return events;
  }

  field(line) {
    if (line.startsWith(":")) return;
    const at = line.indexOf(":");
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "event") this.event = value;
    else if (name === "data") this.data.push(value);
    else if (name === "id") this.id = value;
  }
}

// A server sends a comment every 15 s; three missed ones mean a dead line that TCP has not noticed.
const SILENCE_MS = 45_000;

function withDeadline(promise, reader) {
  let timer;
  const silent = new Promise((_, reject) => {
    timer = window.setTimeout(() => {
      void reader.cancel();
      reject(new TypeError("The stream went silent."));
    }, SILENCE_MS);
  });
  return Promise.race([promise, silent]).finally(() => window.clearTimeout(timer));
}

/** Events of one response body; ends when the body does, throws TypeError when the line breaks. */
export async function* events(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await withDeadline(reader.read(), reader);
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Order of two event ids, which are integers or Redis stream ids ("ms-seq"). */
export function isAfter(id, last) {
  if (last === null || id === null) return true;
  const [a, b] = [id, last].map((value) => value.split("-").map(Number));
  if ([...a, ...b].some(Number.isNaN)) return id !== last;
  return a[0] !== b[0] ? a[0] > b[0] : (a[1] ?? 0) > (b[1] ?? 0);
}
