// The door to /api/v1/: session cookie, CSRF, idempotency and one shape of error.
import { suspect } from "./connection.js";
import { t } from "./i18n.js";
import { told } from "./sentences.js";

export const BASE = "/api/v1/";

/** Problems by field are read by people as well; the rest of a detail is data. */
function inOwnWords(detail) {
  if (!detail.fields) return detail;
  const fields = Object.entries(detail.fields).map(([name, words]) => [name, Array.isArray(words) ? words.map(told) : told(words)]);
  return { ...detail, fields: Object.fromEntries(fields) };
}

/** What the API refused, or what kept it from answering. `code` is from the API's list, or `offline`. */
export class ApiError extends Error {
  constructor({ code, message, detail, retryable, request_id: requestId, status, retryAfter }) {
    super(told(message));
    this.code = code;
    this.detail = inOwnWords(detail ?? {});
    this.retryable = Boolean(retryable);
    this.requestId = requestId ?? null;
    this.status = status ?? 0;
    this.retryAfter = retryAfter ?? null;
  }

  /** From a refusal's status and body, which may be no JSON of ours when a proxy answered. */
  static from(status, body, retryAfter = null) {
    const error = body?.error ?? {};
    if (status >= 502) suspect();
    return new ApiError({
      ...error,
      code: error.code ?? `http_${status}`,
      message: error.message ?? plainRefusal(status),
      retryable: error.retryable ?? status >= 500,
      status,
      retryAfter: Number(retryAfter) || null,
    });
  }
}

function csrfToken() {
  // The cookie first: signing in again in another tab changes it, and this page would not know.
  const cookie = document.cookie.match(/(?:^|;\s*)csrftoken=([^;]+)/);
  return cookie ? decodeURIComponent(cookie[1]) : document.querySelector('meta[name="csrf-token"]')?.content ?? "";
}

export function uniqueKey() {
  return crypto.randomUUID ? crypto.randomUUID() : Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("-");
}

export function requestHeaders(method, { body, key, accept, lastEventId }) {
  const result = new Headers({ Accept: accept ?? "application/json" });
  if (body !== undefined && !(body instanceof FormData)) result.set("Content-Type", "application/json");
  if (method !== "GET") result.set("X-CSRFToken", csrfToken());
  if (method === "POST") result.set("Idempotency-Key", key ?? uniqueKey());
  if (lastEventId) result.set("Last-Event-ID", lastEventId);
  return result;
}

export function unreachable() {
  suspect();
  return new ApiError({
    code: "offline",
    message: navigator.onLine
      ? t("Tessera’s web server does not answer. Your text is kept; try again in a moment.")
      : t("This device is offline. Your text is kept; try again when it is connected."),
    retryable: true,
  });
}

function plainRefusal(status) {
  if (status === 401 || status === 403) return t("You are no longer signed in. Sign in again in another tab, then retry.");
  if (status === 413) return t("This is larger than the server accepts.");
  if (status >= 500) return t("The server failed while answering (HTTP {status}). Nothing was lost; try again.", { status });
  return t("The server refused this request (HTTP {status}).", { status });
}

/** The raw answer of a request that succeeded; throws ApiError otherwise, AbortError when `signal` fired. */
export async function open(method, path, options = {}) {
  const { body, signal } = options;
  let response;
  try {
    response = await fetch(path.startsWith("/") ? path : BASE + path, {
      method,
      signal,
      credentials: "same-origin",
      headers: requestHeaders(method, options),
      body: body === undefined || body instanceof FormData ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (!response.ok) throw ApiError.from(response.status, await response.json().catch(() => null), response.headers.get("Retry-After"));
  return response;
}

async function json(method, path, options) {
  const response = await open(method, path, options);
  return response.status === 204 ? null : response.json();
}

export const get = (path, options) => json("GET", path, options);
export const post = (path, body, options) => json("POST", path, { ...options, body });
export const put = (path, body) => json("PUT", path, { body });
export const patch = (path, body) => json("PATCH", path, { body });
export const remove = (path) => json("DELETE", path);

/** One page of a list: {items, next}; `only`: [name, value] pairs that narrow it. */
export function page(path, { limit = 50, cursor = null, only = [], signal } = {}) {
  const query = new URLSearchParams([["limit", String(limit)], ...only]);
  if (cursor) query.set("cursor", cursor);
  return get(`${path}?${query}`, { signal });
}

/** Every item of a list that is short by nature (models, collections). */
export async function all(path) {
  const items = [];
  let cursor = null;
  do {
    const part = await page(path, { limit: 200, cursor });
    items.push(...part.items);
    cursor = part.next;
  } while (cursor && items.length < 2000);
  return items;
}
