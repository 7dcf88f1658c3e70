"use strict";
// Light or dark theme: that of the system, until the reader chooses one.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const update = () => {
    const words = isDark() ? "Light theme" : "Dark theme";
    button.firstElementChild.textContent = words;
    button.title = words;
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("rulescope-theme", root.dataset.theme);
    } catch {
      // Some browsers keep nothing for pages from disk; the choice then lasts as long as the page.
    }
    update();
  });
  dark.addEventListener("change", update);
  update();

  // A link to something inside of a closed part opens it.
  const reveal = () => {
    let target = null;
    try {
      target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return; // not an id
    }
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  // On paper nothing can be opened; afterwards what was closed is closed again.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...opened, ...document.querySelectorAll("details:not([open])")];
    for (const part of opened) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
    opened = [];
  });
})();
