// Answer with the newest version of a file, or with the stored copy if the server is not reached.
oninstall = (event) => {
  skipWaiting();
  // Files that a first visit loads before this worker.
  const seen = ["./", "index.html", "page.css", "page.js"];
  event.waitUntil(caches.open("page").then((kept) => kept.addAll(seen)));
};
onactivate = (event) => event.waitUntil(clients.claim());
onfetch = (event) => event.respondWith(answer(event.request));
async function answer(request) {
  const kept = await caches.open("page");
  const found = await fetch(request).catch(() => kept.match(request));
  if (found?.ok) await kept.put(request, found.clone());
  return found ?? Response.error();
}
