extension LabScript {
  /// Draws the challenge for the second factor and the tab "Security".
  static let factor = #"""
      // Arrow keys, Home and End move through a list of tabs.
      const step = (event, list, index) => {
        const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const next = event.key === "Home" ? 0 : event.key === "End" ? list.length - 1 :
          move ? (index + move + list.length) % list.length : -1;
        if (next < 0) return undefined;
        event.preventDefault();
        return list[next];
      };

      const drawChallenge = (data) => {
        show("challenge", data && data.tabs.length > 0 && data.status !== "Signed in");
        if (!data) return;
        draw("challenge-tabs", [data.tabs, data.selected, data.isInputEnabled], () => data.tabs.map((tab, index) => {
          const isSelected = tab.id === data.selected;
          const button = element("button", {
            id: "challenge-tab-" + tab.id, role: "tab", "aria-controls": "challenge-panel",
            "aria-selected": String(isSelected), tabindex: isSelected ? "0" : "-1", "aria-disabled": String(!data.isInputEnabled),
            onclick: () => send("challengeTab", { value: tab.id })
          }, tab.label);
          button.addEventListener("keydown", (event) => {
            const next = step(event, data.tabs, index);
            if (!next) return;
            find("challenge-tab-" + next.id).focus();
            send("challengeTab", { value: next.id });
          });
          return button;
        }));
        find("challenge-panel").setAttribute("aria-labelledby", "challenge-tab-" + data.selected);
        text("challenge-error", data.error);
        text("challenge-notice", data.notice);
        text("challenge-label", data.label);
        const input = find("challenge-input");
        if (shown.challengeTab !== data.selected) input.value = "";
        shown.challengeTab = data.selected;
        input.type = data.isMasked ? "password" : "text";
        input.inputMode = data.isMasked ? "text" : "numeric";
        input.maxLength = data.longest;
        input.disabled = !data.isInputEnabled;
        // The app has taken all that was typed here and has nothing left: the code was wrong.
        if (data.isEntryEmpty && data.change === entries) input.value = "";
        show("challenge-form", data.takesCode);
        find("challenge-verify").disabled = !data.canSubmit;
        show("challenge-timer", data.secondsLeft !== undefined);
        text("challenge-seconds", data.secondsLeft === undefined ? "" : "Next code in " + data.secondsLeft + " s");
        find("challenge-ring").setAttribute("stroke-dasharray", (data.secondsLeft || 0) + " 30");
        const actions = [];
        if (data.email) actions.push({
          id: "email", label: data.email.label, event: "challengeEmail", disabled: !data.canSendEmail,
          primary: data.suggestsResend
        });
        if (data.securityKey) actions.push({
          id: "securityKey", label: data.securityKey.label, event: "challengeSecurityKey",
          disabled: !data.canUseSecurityKey, primary: true
        });
        if (data.biometry) actions.push({ id: "biometry", label: data.biometry, event: "challengeBiometry" });
        draw("challenge-actions", [actions, data.isBiometryConfirmed], () => [
          ...actions.map((action) => element("button", {
            id: "challenge-" + action.id, disabled: action.disabled, class: action.primary ? "primary" : null,
            onclick: () => send(action.event)
          }, action.label)),
          ...(data.isBiometryConfirmed ? [element("span", { class: "good" }, "✓ Confirmed; the code is still needed")] : [])]);
        find("challenge-remember").checked = data.remembers;
        find("challenge-remember").disabled = !data.isInputEnabled;
      };

      const drawSecurity = (data) => {
        text("security-error", data.error);
        text("security-notice", data.notice);
        show("security-busy", data.isBusy);
        facts("security-facts", data.facts);
        show("security-offer", data.secret);
        text("security-secret", data.secret);
        const picture = find("security-picture"), [ground, dark] = picture.children;
        show("security-picture", data.picture);
        if (data.picture) {
          const side = data.picture.side;
          picture.setAttribute("viewBox", "0 0 " + side + " " + side);
          ground.setAttribute("d", "M0 0h" + side + "v" + side + "H0z");
        }
        dark.setAttribute("d", data.picture ? data.picture.path : "");
        show("security-codes", data.backupCodes.length > 0);
        if (!data.backupCodes.length) text("security-note", "");
        draw("security-backup", data.backupCodes, () => data.backupCodes.map((code) => element("li", {}, code)));
        show("security-code", data.codePrompt);
        find("security-code").querySelector("label").textContent = data.codePrompt || "Code";
        const isFirst = data.options.length > 0 && data.options[0].id !== "cancel";
        buttons("security-options", data.options, "factor", "value", data.isBusy, isFirst);
        show("security-email", data.asksEmail);
        show("security-keys-title", data.keys.length > 0);
        draw("security-keys", data.keys, () => data.keys.map((key, index) => element("li", {},
          element("span", {}, element("strong", {}, key.name), " last used " + key.lastUsed),
          element("button", {
            id: "security-remove-" + index, "aria-label": "Remove " + key.name,
            onclick: () => send("factorRemoveKey", { value: key.id })
          }, "Remove"))));
        show("security-devices-title", data.devices.length > 0);
        draw("security-devices", data.devices, () => data.devices.map((device) => element("li", {},
          element("span", {}, element("strong", {}, device.name),
            " last used " + device.lastUsed + ", remembered until " + device.expires),
          element("button", {
            id: "security-revoke-" + device.id, "aria-label": "Revoke " + device.name,
            onclick: () => send("factorRevoke", { number: device.id })
          }, "Revoke"))));
      };
    """#
}
