// Shows the page anew every few seconds, in place: what is open stays open. Without it the page is
// complete, and a <meta> in <noscript> loads it anew.
"use strict";

(() => {
  const every = 10_000;
  const longest = 30_000;
  const live = document.getElementById("live");
  const pause = document.getElementById("pause");
  const stale = document.getElementById("stale");
  let paused = false;
  let touched = new Map();
  let answered = Date.now();
  let timer = 0;

  const noteToggle = (event) => {
    if (event.target.id) touched.set(event.target.id, event.target.open);
  };

  const show = (page) => {
    const fresh = page.getElementById("live");
    if (!fresh) throw new Error("another page");
    for (const details of fresh.querySelectorAll("details[id]")) {
      if (touched.has(details.id)) details.open = touched.get(details.id);
    }
    const focused = document.activeElement;
    const owner = live.contains(focused) ? focused.closest("[id]") : null;
    const place = owner && owner !== live ? owner.id : "";
    const tag = focused ? focused.localName : "";
    const href = focused && focused.getAttribute("href");
    live.replaceChildren(...fresh.childNodes);
    document.title = page.title;
    if (place) {
      const next = document.getElementById(place);
      const same = (one) => one.getAttribute("href") === href;
      const target = next && [...next.querySelectorAll(tag)].find(same);
      if (target) target.focus({ preventScroll: true });
    }
  };

  const load = async () => {
    try {
      const answer = await fetch(location.pathname, {
        cache: "no-store", signal: AbortSignal.timeout(longest),
      });
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      if (!paused) show(new DOMParser().parseFromString(text, "text/html"));
      answered = Date.now();
      stale.hidden = true;
    } catch {
      const minutes = Math.floor((Date.now() - answered) / 60_000);
      const age = minutes ? `${minutes} min` : "some seconds";
      stale.textContent = `No answer: what is shown is ${age} old.`;
      stale.hidden = false;
    }
  };

  const turn = async () => {
    clearTimeout(timer);
    if (!paused && !document.hidden) await load();
    clearTimeout(timer);
    timer = setTimeout(turn, every);
  };

  live.addEventListener("toggle", noteToggle, true);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) turn(); });
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    if (!paused) turn();
  });
  pause.hidden = false;
  timer = setTimeout(turn, every);
})();
