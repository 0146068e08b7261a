/// The script of a console: signs in, fetches live parts again, and copies commands. Pages work without it.
enum ConsoleScript {
  static let text = #"""
    "use strict";
    (() => {
      const byId = id => document.getElementById(id);
      const signIn = byId("sign-in");
      if (signIn) {
        const token = location.hash.slice(1);
        history.replaceState(null, "", location.pathname + location.search);
        if (!token) return;
        signIn.textContent = "Signing in";
        fetch("/session", { method: "POST", body: token, headers: { "Content-Type": "text/plain" } })
          .then(async answer => {
            if (answer.ok) location.reload();
            else signIn.textContent = await answer.text();
          })
          .catch(() => { signIn.textContent = "The console does not answer. Run the command again."; });
        return;
      }
      if (byId("entrance")) {
        // A link of another site comes without the cookie of a session that the browser has.
        fetch(location.href, { headers: { "X-Console-Part": "live" } })
          .then(answer => { if (answer.ok) location.replace(location.pathname + location.search); })
          .catch(() => {});
        return;
      }
      if (location.hash.length > 40) history.replaceState(null, "", location.pathname + location.search);

      for (const button of document.querySelectorAll("[data-copy]")) {
        button.hidden = false;
        button.addEventListener("click", async () => {
          await navigator.clipboard.writeText(byId(button.dataset.copy).textContent);
          button.textContent = "Copied";
        });
      }

      const content = byId("content");
      if (!content || !("live" in content.dataset)) return;
      // The server escapes every text in its fragments.
      const policy = window.trustedTypes
        ? trustedTypes.createPolicy("console", { createHTML: text => text }) : { createHTML: text => text };
      const box = byId("live"), state = byId("live-state");
      box.closest("p").hidden = false;
      const isBusy = () => document.hidden || !box.checked || content.contains(document.activeElement)
        || content.querySelector("details[open]") || String(getSelection()) !== "";
      let shown = content.innerHTML;
      const refresh = async () => {
        if (!isBusy()) {
          try {
            const answer = await fetch(location.href, {
              headers: { "X-Console-Part": "live" }, signal: AbortSignal.timeout(15000),
            });
            if (answer.status === 401) return location.reload();
            // The page of a fault: the page itself is there again.
            if (answer.ok && content.dataset.live === "reload") return location.reload();
            const text = await answer.text();
            state.textContent = answer.ok ? "" : "The service does not answer";
            if (answer.ok && text !== shown && !isBusy()) {
              shown = text;
              const parsed = new DOMParser().parseFromString(policy.createHTML(text), "text/html");
              content.replaceChildren(...parsed.body.childNodes);
            }
          } catch {
            state.textContent = "The console does not answer";
          }
        }
        setTimeout(refresh, 2000);
      };
      setTimeout(refresh, 2000);
    })();
    """#
}
