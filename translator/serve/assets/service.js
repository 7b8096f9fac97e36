"use strict";
// Asks the server for translations, only of lines it has not asked for yet; answers that come too late are dropped.
const Service = (() => {
  const MOST_BEST = 5; // translations in the n-best list, unless the search finds fewer or the server allows fewer
  const NUM_RUNNERS_UP = 5;
  const MOST_KEPT = 300; // lines whose answers are remembered
  const kept = new Map();
  const largestBest = new Map(); // for each pair, what the server says: more would be another search
  const withoutDetails = new Set(); // pairs of languages whose model, an exported one, has none to show
  let running = null;

  // What went wrong, in words; `retry` is the number of seconds after which to try again automatically.
  class Problem extends Error {
    constructor(text, { retry = 0, needsKey = false, isAboutDetails = false } = {}) {
      super(text);
      Object.assign(this, { retry, needsKey, isAboutDetails });
    }
  }

  async function getJson(path, options = {}) {
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem("The server cannot be reached. Is it still running? This page tries again in a few seconds.", { retry: 5 });
    }
    const answer = await response.json().catch(() => ({}));
    if (response.ok) return answer;
    const reason = typeof answer.error === "string" ? answer.error : `status ${response.status}`;
    if (response.status === 429 || response.status === 503) {
      const seconds = Math.min(60, Math.max(1, Number(response.headers.get("Retry-After")) || 2));
      throw new Problem(`The server is busy (${reason}). This page tries again in ${seconds} s.`, { retry: seconds });
    }
    if (response.status === 401 || response.status === 403) throw new Problem(`Access denied: ${reason}.`, { needsKey: true });
    if (response.status < 500) throw new Problem(`This cannot be translated: ${reason}.`, { isAboutDetails: reason.startsWith("details:") });
    throw new Problem(`The server failed: ${reason}.`);
  }

  const numBest = (pair) => Math.min(MOST_BEST, largestBest.get(pair) ?? 1);

  // "heads" are those of the best translation, "heads 1" those of the second.
  function headsOf(wanted) {
    const [name, rank] = wanted.find((one) => one.startsWith("heads"))?.split(" ") ?? [];
    return { heads: name !== undefined, ...(rank ? { heads_rank: Number(rank) } : {}) };
  }

  function ask(text, { pair, key, prefixes, wanted }, hasDetails, signal) {
    const [source, target] = pair.split(">");
    const body = !hasDetails ? { text, source, target } : {
      text, source, target,
      details: { runners_up: NUM_RUNNERS_UP, beam: wanted.includes("beam"), ...headsOf(wanted) },
      ...(prefixes.some(Boolean) ? { prefix: prefixes } : {}),
      ...(wanted.includes("alternatives") ? { nbest: numBest(pair) } : {}),
    };
    const headers = { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
    return getJson("v1/translate", { method: "POST", headers, body: JSON.stringify(body), signal });
  }

  // The details of each of these lines or, without details, only the translations.
  async function look(lines, own, signal) {
    const hasDetails = !withoutDetails.has(own.pair);
    try {
      const answer = await ask(lines.join("\n"), own, hasDetails, signal);
      if (!hasDetails) {
        const texts = answer.text.split("\n");
        return lines.map((line, n) => ({ source: line, text: texts[n] ?? "", segments: [] }));
      }
      if (answer.sentences?.length !== lines.length && !signal.aborted) throw new Problem("The server failed: its answer does not match the request.");
      return (answer.sentences ?? []).map((sentence) => sentence.details);
    } catch (error) {
      if (!error.isAboutDetails || !hasDetails) throw error;
      withoutDetails.add(own.pair);
      return look(lines, own, signal);
    }
  }

  const keyOf = (line, pair, prefixes) => JSON.stringify([pair, line, prefixes]);

  function remember(name, wanted, details) {
    kept.delete(name);
    kept.set(name, { ...details, wanted });
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
    return kept.get(name);
  }

  // The translations of lines; `wanted[n]` names the panels that line n needs data for. An older call ends with an
  // AbortError.
  async function translate(lines, { pair, key, prefixes, wanted }) {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    const found = lines.map((line, n) => {
      if (!line.trim()) return { source: line, text: "", segments: [], wanted: [] };
      const known = kept.get(keyOf(line, pair, prefixes[n] ?? []));
      return known && (wanted[n] ?? []).every((name) => known.wanted.includes(name)) ? known : null;
    });
    const isPlain = (n) => !(prefixes[n] ?? []).some(Boolean) && !(wanted[n] ?? []).length;
    const missing = found.flatMap((one, n) => (one ? [] : [n]));
    const groups = [missing.filter(isPlain), ...missing.filter((n) => !isPlain(n)).map((n) => [n])].filter((group) => group.length);
    for (const group of groups) {
      const own = { pair, key, prefixes: prefixes[group[0]] ?? [], wanted: wanted[group[0]] ?? [] };
      const seen = await look(group.map((n) => lines[n]), own, signal);
      if (signal.aborted) throw new DOMException("too late", "AbortError");
      group.forEach((n, i) => {
        found[n] = remember(keyOf(lines[n], pair, own.prefixes), own.wanted, seen[i]);
      });
    }
    return found;
  }

  // The pairs of languages, as [value, name], and whether a key is needed.
  async function settings() {
    const [languages, own] = await Promise.all([getJson("languages"), getJson("frontend/settings")]);
    const names = Object.fromEntries(languages.map((one) => [one.code, one.name]));
    const pairs = languages.flatMap((one) => one.targets.map((target) => [`${one.code}>${target}`, `${one.name} → ${names[target] ?? target}`]));
    own.nbest.forEach(({ source, target, largest }) => largestBest.set(`${source}>${target}`, largest));
    const first = own.language ? `${own.language.source.code}>${own.language.target.code}` : "";
    return { pairs, needsKey: Boolean(own.keyRequired), pair: pairs.some(([value]) => value === first) ? first : pairs[0]?.[0] };
  }

  const note = (pair) => (withoutDetails.has(pair) ? "This is an exported model, which translates but has no details to show." : "");

  return { translate, settings, numBest, note, Problem };
})();
