"use strict";
// Light or dark: as the system says, until the button is used.
(() => {
  const root = document.documentElement;
  const remembered = () => {
    try { return localStorage.getItem("theme"); } catch { return null; } // not allowed for every local file
  };
  const remember = (theme) => {
    try { localStorage.setItem("theme", theme); } catch { /* only for this visit, then */ }
  };
  const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const stored = remembered();
  if (stored === "light" || stored === "dark") root.dataset.theme = stored;
  const button = document.getElementById("theme");
  const changed = () => document.dispatchEvent(new Event("themechange")); // for pictures that cannot use variables
  const label = () => { button.textContent = isDark() ? "Light mode" : "Dark mode"; }; // what it changes to
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    label();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    label();
    changed();
  });
  label();
})();
