// Money, tokens and time as people read them. Amounts arrive as exact decimal strings and are never added up here.
import { language, locale, t } from "./i18n.js";

const THIN = "\u202f";

const symbols = new Map();

/** A number that was written with a point, with the mark of the reader's language. */
export function decimal(text) {
  return language === "de" ? text.replace(".", ",") : text;
}

/** Symbol and number in the order of the reader's language; `number` may be a span of two. */
function priced(mark, number) {
  return language === "de" ? `${decimal(number)}\u00a0${mark.trim()}` : mark + number;
}

function symbol(currency) {
  if (!symbols.has(currency)) {
    const parts = new Intl.NumberFormat("en", { style: "currency", currency, currencyDisplay: "narrowSymbol" }).formatToParts(0);
    symbols.set(currency, parts.find((part) => part.type === "currency")?.value ?? currency);
  }
  return symbols.get(currency);
}

/** The digits that matter: two decimals from a cent up, two significant digits below, at most eight. */
function digits(amount) {
  const value = Math.abs(Number(amount));
  if (!Number.isFinite(value)) return String(amount);
  if (value === 0) return "0.00";
  if (value >= 0.0995) return group(value.toFixed(2));
  const places = Math.min(8, 1 - Math.floor(Math.log10(value)));
  const text = value.toFixed(places);
  return Number(text) === 0 ? "<0.00000001" : text;
}

function group(text) {
  const [whole, rest] = text.split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, THIN) + (rest ? `.${rest}` : "");
}

/** {amount, currency} → "€0.0012"; null → "price unknown". */
export function money(value) {
  if (!value || value.amount === null || value.amount === undefined) return t("price unknown");
  const sign = String(value.amount).startsWith("-") ? "−" : "";
  const number = digits(value.amount);
  const below = number.startsWith("<") ? "<" : "";
  return sign + below + priced(symbol(value.currency), number.slice(below.length));
}

/** The whole amount for a hover: "0.00123400 EUR". */
export function moneyExact(value) {
  return value ? `${decimal(value.amount)} ${value.currency}` : t("No price is set for this model.");
}

export function moneyRange(low, high) {
  if (!low || !high) return money(high ?? low);
  const [a, b] = [money(low), money(high)];
  if (a === b) return a;
  return language === "de" ? `${a.replace(/\u00a0\D+$/, "")}–${b}` : `${a}–${b.replace(/^[^\d<]+/, "")}`;
}

const UNITS = { token: t("token"), tokens: t("tokens"), request: t("request"), requests: t("requests"), page: t("page"), pages: t("pages") };

/** "1 200 tokens", the unit in the reader's language. */
export function quantity(number, unit) {
  return `${number} ${UNITS[unit] ?? unit}`;
}

const MONTHS = Array.from({ length: 12 }, (_, month) => new Date(2000, month).toLocaleDateString("en", { month: "long" }));
const MOMENT = new RegExp(`^(\\d{1,2}) (${MONTHS.join("|")})( \\d{4})?(, .+)?$`, "u");

function momentTold([, day_, month, year = "", rest = ""]) {
  return `${day_}. ${new Date(2000, MONTHS.indexOf(month)).toLocaleDateString(locale, { month: "long" })}${year}${rest}`;
}

/** An amount or a date as the server writes it for programs ("€1 234.50", "3 tokens", "1.2 MB", "1 December, 00:00
 * Europe/Berlin") as a German reader writes it; any other text stays. */
export function amountTold(text) {
  const moment = MOMENT.exec(text);
  if (moment) return momentTold(moment);
  const price = /^(−?<?)([€$£¥]|[A-Z]{3} )([\d\u202f]+(?:\.\d+)?)$/u.exec(text);
  if (price) return price[1] + priced(price[2], price[3]);
  const other = /^([\d\u202f]+(?:\.\d)?) (tokens?|requests?|pages?|bytes|[kMGTP]B)$/u.exec(text);
  return other ? quantity(decimal(other[1]), other[2]) : text;
}

/** 12345 → "12 345" with a thin separator; null → "unknown". */
export function count(value) {
  return value === null || value === undefined ? t("unknown") : group(String(value));
}

export function seconds(ms) {
  if (ms === null || ms === undefined) return t("unknown");
  if (ms < 9.5) return `${decimal(ms.toFixed(1))}${THIN}ms`;
  if (ms < 95) return `${Math.round(ms)}${THIN}ms`;
  if (ms < 950) return `${decimal(String(Math.round(ms / 10) / 100))}${THIN}s`;
  if (ms < 59_500) return `${decimal((ms / 1000).toFixed(1))}${THIN}s`;
  return `${Math.floor(ms / 60_000)}${THIN}min ${Math.round((ms % 60_000) / 1000)}${THIN}s`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "";
  if (value < 1000) return `${value} B`;
  if (value < 999_500) return `${Math.round(value / 1000)} kB`;
  return `${decimal((value / 1e6).toFixed(1))} MB`;
}

const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });

/** "just now", "4 minutes ago", "yesterday", "12 Nov". */
export function ago(iso, now = Date.now()) {
  const then = new Date(iso);
  const gone = (now - then.getTime()) / 1000;
  if (gone < 45) return t("just now");
  if (gone < 3600) return relative.format(-Math.max(1, Math.round(gone / 60)), "minute");
  if (gone < 86_400) return relative.format(-Math.round(gone / 3600), "hour");
  if (gone < 6 * 86_400) return relative.format(-Math.round(gone / 86_400), "day");
  return day(then);
}

export function day(when) {
  const date = new Date(when);
  const year = date.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  return date.toLocaleDateString(locale, { day: "numeric", month: "short", ...year });
}

/** "1 December 2026", which also in German ends without a point. */
export function wholeDay(iso) {
  return new Date(iso).toLocaleDateString(locale, { dateStyle: "long" });
}

export function exactTime(iso) {
  return new Date(iso).toLocaleString(locale, { dateStyle: "long", timeStyle: "long" });
}

/** Whole days between a time and now, by the reader's calendar. */
export function daysAgo(iso) {
  const midnight = (date) => new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
  return Math.round((midnight(new Date()) - midnight(new Date(iso))) / 86_400_000);
}
