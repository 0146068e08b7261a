/// The script of the device lab. It draws what the server sends, sends what the user does, and decides nothing.
enum LabScript {
  static let text = #"""
    "use strict";
    (() => {
      const tabs = ["enroll", "signIn", "security", "dashboard", "settings"];
      const find = (id) => document.getElementById(id);
      let socket, state, lines = [], shown = {}, settingsOpened = 0, lastPrompt = 0, queue = [], entries = 0;

      const send = (event, fields) => {
        if (socket && socket.readyState === 1) socket.send(JSON.stringify({ event, ...fields }));
      };

      const element = (name, attributes, ...children) => {
        const node = document.createElement(name);
        for (const [key, value] of Object.entries(attributes || {})) {
          if (key === "onclick") node.addEventListener("click", value);
          else if (value === true) node.setAttribute(key, "");
          else if (value !== false && value !== undefined && value !== null) node.setAttribute(key, value);
        }
        node.append(...children);
        return node;
      };

      const text = (id, value) => {
        const node = find(id);
        if (node.textContent !== (value || "")) node.textContent = value || "";
      };

      // Replaces the children of an element if their data has changed, and keeps the focus.
      const draw = (id, data, children) => {
        const key = JSON.stringify(data);
        if (shown[id] === key) return;
        shown[id] = key;
        const parent = find(id), focus = parent.contains(document.activeElement) ? document.activeElement.id : null;
        parent.replaceChildren(...children());
        if (focus === null) return;
        const next = focus && find(focus);
        if (next && !next.disabled) return next.focus();
        const panel = parent.closest("[role=tabpanel], [tabindex]");
        if (panel) panel.focus();
      };

      const buttons = (id, choices, event, field, isBusy, first) => draw(id, [choices, isBusy], () =>
        choices.map((choice, index) => element("button", {
          id: id + "-" + choice.id, disabled: isBusy, class: first && index === 0 ? "primary" : null,
          onclick: () => send(event, { [field]: choice.id })
        }, choice.label)));

      const facts = (id, list) => draw(id, list, () => list.map((fact) => element("li", {},
        element("span", {}, fact.label),
        element("strong", { class: fact.isGood === true ? "good" : fact.isGood === false ? "error" : null },
          (fact.isGood === true ? "✓ " : fact.isGood === false ? "✗ " : "") + fact.value))));

      const show = (id, isVisible) => { find(id).hidden = !isVisible; };

      const drawTabs = () => {
        for (const tab of tabs) {
          const isSelected = tab === state.tab, button = find("tab-" + tab);
          button.setAttribute("aria-selected", isSelected);
          button.tabIndex = isSelected ? 0 : -1;
          show("panel-" + tab, isSelected);
        }
      };

      const drawEnrolment = (data) => {
        const input = find("username-input");
        if (document.activeElement !== input) input.value = state.username;
        text("enroll-title", data.title);
        text("enroll-message", data.message);
        text("enroll-error", data.error);
        show("enroll-busy", data.isBusy);
        const options = data.options.concat(data.offersDecline ? [{ id: "decline", label: "No" }] : []);
        draw("enroll-options", [options, data.isBusy], () => options.map((choice, index) => element("button", {
          id: "enroll-" + choice.id, disabled: data.isBusy, class: index === 0 ? "primary" : null,
          onclick: () => choice.id === "decline" ? send("declinePasscode") : send("enroll", { value: choice.id })
        }, choice.label)));
        show("enroll-number", data.asksNumber);
      };

      const drawSignIn = (data) => {
        text("signin-username", state.username);
        text("signin-status", data.status);
        text("signin-error", data.error);
        show("signin-busy", data.isBusy);
        const options = data.isSignedIn ? [{ id: "again", label: "Sign In Again" }] : data.options;
        const isFirst = !data.challenge || data.status === "Signed in";
        draw("signin-options", [options, data.isBusy, isFirst], () => options.map((choice, index) => element("button", {
          id: "signin-" + choice.id, disabled: data.isBusy,
          class: isFirst && index === 0 ? "primary" : null,
          onclick: () => choice.id === "again" ? send("startOver") : send("signIn", { value: choice.id })
        }, choice.label)));
        show("signin-code", data.asksCode);
        drawChallenge(data.challenge);
      };

    \#(factor)
      const drawDashboard = (data) => {
        facts("dashboard-cards", data.cards);
        buttons("dashboard-actions", data.actions, "run", "value", data.isBusy);
        show("dashboard-busy", data.isBusy);
        text("dashboard-result", data.result && (data.hasSucceeded ? "✓ " : "✗ ") + data.result);
        find("dashboard-result").className = data.hasSucceeded ? "good" : "error";
        show("dashboard-code", data.asksCode);
      };

      const drawSettings = (data) => {
        text("settings-alert", data.alert);
        text("settings-title", data.title);
        text("settings-notice", data.notice);
        text("settings-error", data.error);
        show("settings-busy", data.isBusy);
        buttons("settings-options", data.options, "settings", "value", data.isBusy, true);
        facts("settings-facts", data.facts);
        show("settings-number", data.asksNumber);
        show("settings-numberCode", data.asksNumberCode);
        show("settings-resend", data.asksNumberCode);
      };

      const drawPhone = (data) => {
        text("phone-model", data.model);
        text("phone-locked", data.isLockedOut ? "Biometry is locked until the passcode is entered" : "");
        find("phone-passcode").checked = data.isPasscodeSet;
        find("phone-biometryEnrolled").checked = data.isBiometryEnrolled;
        find("phone-simulator").checked = data.isSimulator;
        find("phone-biometry").value = data.biometry;
        find("phone-permission").value = data.permission;
        draw("phone-messages", data.messages, () => data.messages.map((message) => element("li", {}, message)));
        draw("phone-prompts", data.prompts, () => data.prompts.map((prompt) => element("div",
          { class: "prompt", role: "group", "aria-label": prompt.title },
          element("h4", {}, prompt.title), element("p", {}, prompt.reason),
          element("div", { class: "actions" },
            ...prompt.answers.map((answer, index) => element("button", {
              id: "answer-" + prompt.id + "-" + answer.id, class: index === 0 ? "primary" : null,
              onclick: () => send("answer", { number: prompt.id, value: answer.id })
            }, answer.label)),
            element("button", {
              id: "answer-" + prompt.id + "-interrupt",
              onclick: () => send("answer", { number: prompt.id, value: find("phone-interruption").value })
            }, "End by the system")))));
        // A prompt covers the app, as on a phone.
        const first = find("phone-prompts").querySelector("button");
        const prompt = data.prompts.length ? data.prompts[0].id : 0;
        if (prompt !== lastPrompt) (first || find("tab-" + state.tab)).focus();
        lastPrompt = prompt;
        if (data.timesSettingsOpened > settingsOpened) find("phone-settings").focus();
        settingsOpened = data.timesSettingsOpened;
      };

      const drawScenarios = () => {
        const isBusy = state.scenarios.some((scenario) => scenario.status === "running");
        draw("scenarios", state.scenarios, () => state.scenarios.map((scenario, index) => element("li", {},
          element("button", { id: "scenario-" + index, onclick: () => play([index]), "aria-disabled": isBusy },
            element("span", {}, scenario.id), element("span", {}, scenario.title),
            element("span", { class: "verdict " + (scenario.status === "failed" ? "error" : "good") },
              { new: "", running: "playing", passed: "✓ passed", failed: "✗ failed" }[scenario.status])),
          scenario.failure ? element("p", { class: "error" }, scenario.failure) : "")));
        if (!isBusy && queue.length) send("play", { number: queue.shift() });
      };

      const play = (list) => {
        const isBusy = state.scenarios.some((scenario) => scenario.status === "running") || queue.length > 0;
        if (isBusy) return;
        queue = list;
        send("play", { number: queue.shift() });
      };

      const drawSequence = (data) => {
        if (!data) return;
        text("sequence-title", data.title);
        draw("sequence", data.exchanges, () => [
          element("li", { class: "lanes" }, element("span", {}, "phone"), element("span", {}, "gate"),
            element("span", {}, "backend")),
          ...data.exchanges.map((exchange) => element("li", {},
            element("span", { class: "text" }, exchange.operation + (exchange.hasSucceeded ? " ✓" :
              " ✗ " + exchange.detail)),
            element("span", { class: "arrow " + exchange.end + (exchange.hasSucceeded ? "" : " failed") })))
        ]);
        const list = find("sequence");
        list.scrollTop = list.scrollHeight;
      };

      const matches = (line) => {
        const wanted = find("log-filter").value.toLowerCase();
        if (find("log-failures").checked && !line.isFailure) return false;
        return !wanted || (line.time + line.source + line.title + line.detail).toLowerCase().includes(wanted);
      };

      const row = (line) => element("li", {}, element("details", {},
        element("summary", { class: line.isFailure ? "failed" : null, tabindex: "-1" },
          element("time", {}, line.time), " ", line.source, " ", line.isFailure ? "✗ " : "✓ ", line.title),
        element("p", {}, line.detail || "no details")));

      const isAtEnd = (list) => list.scrollHeight - list.scrollTop - list.clientHeight < 48;

      const drawLog = () => find("log").replaceChildren(...lines.filter(matches).map(row));

      // The log is one stop of the Tab key, however many lines it has.
      const moveInLog = (event) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const rows = [...find("log").querySelectorAll("summary")], current = rows.indexOf(document.activeElement);
        const next = current < 0 ? rows.at(step > 0 ? 0 : -1) : rows[current + step];
        if (next) next.focus();
      };

      const addLines = (added) => {
        const list = find("log"), follows = isAtEnd(list);
        lines = lines.concat(added);
        if (lines.length > 1000) {
          lines = lines.slice(-1000);
          drawLog();
        } else {
          list.append(...added.filter(matches).map(row));
        }
        if (follows) list.scrollTop = list.scrollHeight;
      };

      const render = () => {
        drawTabs();
        drawEnrolment(state.enrolment);
        drawSignIn(state.signIn);
        drawSecurity(state.security);
        drawDashboard(state.dashboard);
        drawSettings(state.settings);
        drawPhone(state.phone);
        drawScenarios();
        drawSequence(state.sequence);
      };

      const select = (tab) => {
        send("tab", { value: tab });
        find("tab-" + tab).focus();
      };

      const listen = () => {
        for (const tab of tabs) {
          find("tab-" + tab).addEventListener("click", () => select(tab));
          find("tab-" + tab).addEventListener("keydown", (event) => {
            const next = step(event, tabs, tabs.indexOf(tab));
            if (next) select(next);
          });
        }
        find("challenge-input").addEventListener("input", (event) => {
          send("challengeEntry", { value: event.target.value, number: ++entries });
        });
        find("challenge-form").addEventListener("submit", (event) => {
          event.preventDefault();
          send("challengeVerify");
        });
        find("challenge-remember").addEventListener("change", (event) =>
          send("challengeRemember", { flag: event.target.checked }));
        find("security-copy").addEventListener("click", () =>
          navigator.clipboard.writeText(state.security.backupCodesFile).then(
            () => text("security-note", "Copied"), () => text("security-note", "The browser refuses to copy")));
        find("security-download").addEventListener("click", () => {
          const address = URL.createObjectURL(new Blob([state.security.backupCodesFile], { type: "text/plain" }));
          element("a", { href: address, download: "backup-codes.txt" }).click();
          setTimeout(() => URL.revokeObjectURL(address), 1000);
          text("security-note", "Saved as backup-codes.txt");
        });
        find("settings-resend").addEventListener("click", () => send("resendNumberCode"));
        for (const form of document.querySelectorAll("form[data-event]")) {
          form.addEventListener("submit", (event) => {
            event.preventDefault();
            const input = form.querySelector("input");
            send(form.dataset.event, { value: input.value.trim() });
            if (form.dataset.event.toLowerCase().includes("code")) input.value = "";
          });
        }
        for (const input of document.querySelectorAll(".switches input")) {
          input.addEventListener("change", () => send(input.dataset.event, { flag: input.checked }));
        }
        for (const choice of document.querySelectorAll(".switches select")) {
          choice.addEventListener("change", () => send(choice.dataset.event, { value: choice.value }));
        }
        find("play-all").addEventListener("click", () => play(state.scenarios.map((_, index) => index)));
        find("log-filter").addEventListener("input", drawLog);
        find("log-failures").addEventListener("change", drawLog);
        find("log").addEventListener("keydown", moveInLog);
        find("log-clear").addEventListener("click", () => { lines = []; drawLog(); send("clearLog"); });
        find("log-copy").addEventListener("click", () => {
          const copied = lines.filter(matches).map((line) =>
            [line.time, line.source, line.isFailure ? "failure" : "success", line.title, line.detail].join("\t"));
          navigator.clipboard.writeText(copied.join("\n")).then(
            () => text("log-note", copied.length + " lines copied"), () => text("log-note", "The browser refuses to copy"));
        });
      };

      const connect = () => {
        const token = location.hash.slice(1);
        socket = new WebSocket("ws://" + location.host + "/lab");
        socket.addEventListener("open", () => {
          text("connection", "Connected");
          socket.send(JSON.stringify({ event: "hello", value: token }));
          lines = [];
          drawLog();
        });
        socket.addEventListener("message", (message) => {
          const data = JSON.parse(message.data);
          if (data.log) addLines(data.log);
          if (data.error) {
            queue = [];
            text("connection", "Refused: " + data.error);
          }
          if (data.state) {
            state = data.state;
            if (find("connection").textContent.startsWith("Refused") === false) text("connection", "Connected");
            render();
          }
        });
        socket.addEventListener("close", (event) => {
          queue = [];
          if (event.code >= 4000) return text("connection", "Closed: " + event.reason);
          text("connection", "The lab does not run. Trying again");
          setTimeout(connect, 1000);
        });
      };

      listen();
      connect();
    })();
    """#
}
