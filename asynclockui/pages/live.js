// Replaces the part of the page that changes, as the server sends it. Without it the page reloads itself.
(() => {
  const live = document.getElementById("live");
  const status = document.getElementById("status");
  const pause = document.getElementById("pause");
  let source, silence, again; // the stream, and what is to happen later
  let latest, shown, pressed = false;

  const say = (text) => { if (status.textContent !== text) status.textContent = text; };

  // A link that is replaced while the button is down would not be followed, and a selection would be gone.
  const isSelected = () => {
    const selection = getSelection();
    return selection.type === "Range" && selection.getRangeAt(0).intersectsNode(live);
  };

  const show = () => {
    if (latest === shown || pressed || isSelected()) return;
    const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
    live.innerHTML = shown = latest; // a template of the server has made it, which escapes
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  };

  const end = () => {
    source?.close();
    clearTimeout(silence);
    clearTimeout(again);
  };

  // The server says something each second, or after ten if the store is silent. A connection that is dead may never say so.
  const listen = () => {
    clearTimeout(silence);
    silence = setTimeout(() => {
      say("old: no answer from the server, trying again");
      silence = setTimeout(begin, 12000);
    }, 12000);
  };

  const begin = () => {
    end();
    if (document.hidden || pause.getAttribute("aria-pressed") === "true") return;
    const own = source = new EventSource(live.dataset.events);
    const heard = () => {
      listen();
      show();
      say(latest === shown ? "live" : "old: waits while something is selected");
    };
    own.addEventListener("body", (event) => {
      latest = event.data;
      heard();
    });
    own.addEventListener("same", heard);
    own.addEventListener("end", (event) => { // the server ends each stream after a while, and says when to ask again
      end();
      again = setTimeout(begin, Number(event.data));
    });
    own.onerror = () => {
      if (own.readyState !== EventSource.CLOSED) return; // it asks again by itself
      end();
      say("old: the server refuses, trying again");
      again = setTimeout(begin, 10000);
    };
    listen();
  };

  live.addEventListener("pointerdown", () => { pressed = true; });
  for (const up of ["pointerup", "pointercancel", "contextmenu"]) {
    addEventListener(up, () => setTimeout(() => { // after the click
      pressed = false;
      show();
    }));
  }
  pause.hidden = false;
  pause.addEventListener("click", () => {
    const paused = pause.getAttribute("aria-pressed") === "false";
    pause.setAttribute("aria-pressed", String(paused));
    say(paused ? "paused" : "loading");
    begin();
  });
  document.addEventListener("visibilitychange", () => { // a page that nobody sees asks for nothing
    if (status.textContent !== "paused") say("loading");
    begin();
  });
  begin();
})();
