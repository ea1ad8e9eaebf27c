// A page that stays open and is visible is read again every few seconds, and its parts that differ
// are put in place of the old ones.
"use strict";

const here = document.getElementById("live");
const button = document.createElement("button");
const say = document.createElement("span");
let paused = false, busy = false, again = false;

button.type = "button";
button.textContent = "Pause";
button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? "Follow" : "Pause";
  tell(paused ? "Paused." : "Following.");
  if (!paused) refresh();
});
here.append(say, " ", button);

function tell(text) {
  say.textContent = text;
  here.className = text === "Following." ? "following" : "";
}

// put replaces a part, and keeps what the reader has opened or stands on.
function put(old, part) {
  const open = [...old.querySelectorAll("details[open]")].map((d) => d.id);
  const focus = old.contains(document.activeElement) ? document.activeElement : null;
  const at = focus && (focus.getAttribute("href") || focus.closest("[id]").id);
  old.replaceWith(part);
  for (const id of open) part.querySelector("#" + CSS.escape(id))?.setAttribute("open", "");
  if (!focus) return;
  const same = (e) => e.getAttribute("href") === at || e.closest("[id]").id === at;
  [...part.querySelectorAll("a[href], summary, input, button")].find(same)
    ?.focus({ preventScroll: true });
}

async function refresh() {
  again = busy || paused;
  if (again || document.hidden) return;
  busy = true;
  try {
    const answer = await fetch(location.href, { cache: "no-cache" });
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of document.querySelectorAll("[data-live]")) {
      const part = page.getElementById(old.id);
      const opened = [...old.querySelectorAll("details[open]")];
      opened.forEach((d) => d.removeAttribute("open"));
      const differs = part && part.outerHTML !== old.outerHTML;
      opened.forEach((d) => d.setAttribute("open", ""));
      if (differs) put(old, document.adoptNode(part));
    }
    document.title = page.title;
    tell("Following.");
  } catch {
    tell("Cannot update, retrying.");
  }
  busy = false;
  if (again) refresh();
}

document.addEventListener("visibilitychange", refresh);
setInterval(refresh, 5000);
refresh();
