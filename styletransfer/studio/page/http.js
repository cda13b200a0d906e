// Requests to the studio's server.

/** What the server, or the way to it, refused: one line, and the key that caused it, or null. */
export class Refusal extends Error {
  constructor(message, key = null) {
    super(message);
    this.key = key;
  }
}

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refusal(
      "The studio's server does not answer; look at the terminal it was started in.",
    );
  }
  const found = await response.json().catch(() => ({}));
  if (response.ok) return found;
  throw new Refusal(found.error ?? `The server answered ${response.status}.`, found.key ?? null);
}

export const get = (path) => answer(path, { cache: "no-store" });

export const post = (path, body = {}) =>
  answer(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

export const upload = (name, blob) =>
  answer(`/api/pictures?name=${encodeURIComponent(name)}`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: blob,
  });

export const pictureUrl = (id, side) => `/api/pictures/${id}?side=${side}`;
export const runUrl = (id, part, query) => `/api/runs/${id}/${part}?${query}`;
