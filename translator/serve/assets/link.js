"use strict";
// Copies the address of the view. Where the browser does not allow that, the address is shown and selected instead.
(() => {
  const [button, field, said] = ["copy-link", "link", "link-said"].map((id) => document.getElementById(id));
  let due = 0;

  function say(text, seconds) {
    clearTimeout(due);
    said.textContent = text;
    due = setTimeout(() => { said.textContent = ""; }, 1000 * seconds);
  }

  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say("copied", 3);
    } catch { // not a secure context, or no permission
      field.value = location.href;
      field.hidden = false;
      field.focus();
      field.select();
      say("copy this address", 20);
    }
  });
  field.addEventListener("blur", () => {
    field.hidden = true;
    say("", 0);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") button.focus();
  });
})();
