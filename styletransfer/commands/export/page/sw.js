// The newest of each file where there is a network, and what was loaded before where there is none.
oninstall = (event) => {
  skipWaiting();
  // What a first visit has loaded before this is here.
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
