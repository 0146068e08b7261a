internal import ByteCoding
internal import Cryptography
internal import MFAClient
internal import MFAViewModels

/// The page of the device lab: one document without outside resources.
public enum LabPage {
  /// The document.
  public static let document: String = html.text

  /// The value of `Content-Security-Policy`: the one style sheet, the one script, and a WebSocket to the same server.
  ///
  /// Scripts cannot write markup: `trusted-types 'none'` forbids it.
  public static let policy: String = {
    let style = Base64.encode(SHA256.hash(Array(LabStyle.text.utf8)))
    let script = Base64.encode(SHA256.hash(Array(LabScript.text.utf8)))
    return "default-src 'none'; style-src 'sha256-\(style)'; script-src 'sha256-\(script)'; connect-src 'self'; "
      + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
      + "trusted-types 'none'"
  }()

  // Style sheet and script are constants, of which the policy has the hashes.
  private static let style = HTML(stringLiteral: "<style>\(LabStyle.text)</style>")
  private static let script = HTML(stringLiteral: "<script>\(LabScript.text)</script>")

  private static let html: HTML = """
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Device lab</title>
    \(style)
    </head>
    <body>
    <header>
    <h1>Device lab</h1>
    <p id="connection" role="status">Connecting</p>
    </header>
    <div class="desk">
    <main>
    <div class="tabs" role="tablist" aria-label="Screens of the app">
    \(LabTab.allCases.map(tabButton))
    </div>
    \(enrolPanel)
    \(signInPanel)
    \(securityPanel)
    \(dashboardPanel)
    \(settingsPanel)
    </main>
    \(phone)
    </div>
    \(scenarios)
    \(log)
    \(script)
    </body>
    </html>

    """

  private static func tabButton(_ tab: LabTab) -> HTML {
    """
    <button role="tab" id="tab-\(tab.rawValue)" aria-controls="panel-\(tab.rawValue)" aria-selected="false" \
    tabindex="-1">\(tab.label)</button>

    """
  }

  private static func panel(_ tab: LabTab, _ content: HTML) -> HTML {
    """
    <section role="tabpanel" id="panel-\(tab.rawValue)" aria-labelledby="tab-\(tab.rawValue)" tabindex="0" hidden>
    \(content)
    </section>
    """
  }

  /// A form of one field. `event` is the event that it sends.
  private static func form(
    _ id: String, event: String, label: String, button: String, isPrimary: Bool = false, input: HTML
  ) -> HTML {
    """
    <form id="\(id)" data-event="\(event)" class="field">
    <label for="\(id)-input">\(label)</label>
    <div class="row"><input id="\(id)-input" \(input)>\
    \(isPrimary ? #"<button class="primary">"# : "<button>" as HTML)\(button)</button></div>
    </form>
    """
  }

  private static let enrolPanel = panel(
    .enroll,
    """
    \(form("username", event: "username", label: "User name", button: "Use", input: #"maxlength="64" autocomplete="username""#))
    <h2 id="enroll-title"></h2>
    <p id="enroll-message"></p>
    <p id="enroll-error" class="error" role="alert"></p>
    <progress id="enroll-busy" aria-label="Working" hidden></progress>
    <div id="enroll-options" class="actions"></div>
    \(form("enroll-number", event: "registerNumber", label: "Phone number for SMS codes", button: "Use SMS Codes",
           input: #"type="tel" autocomplete="tel" placeholder="the number of this phone""#))
    """)

  private static let signInPanel = panel(
    .signIn,
    """
    <h2>Sign in as <span id="signin-username"></span></h2>
    <p id="signin-status" role="status"></p>
    <p id="signin-error" class="error" role="alert"></p>
    <progress id="signin-busy" aria-label="Working" hidden></progress>
    <div id="signin-options" class="actions"></div>
    \(form("signin-code", event: "code", label: "Code", button: "Verify", input: #"inputmode="numeric" maxlength="12" autocomplete="one-time-code""#))
    \(challenge)
    """)

  /// The challenge for the second factor: its tabs, its entry and its buttons are drawn by the script.
  private static let challenge: HTML = """
    <section id="challenge" aria-labelledby="challenge-title" hidden>
    <h3 id="challenge-title">Second factor</h3>
    <div id="challenge-tabs" class="tabs" role="tablist" aria-label="Kinds of codes"></div>
    <div id="challenge-panel" role="tabpanel">
    <p id="challenge-error" class="alert" role="alert"></p>
    <label class="switch"><input type="checkbox" id="challenge-remember">\
    <span>Remember this device for 30 days</span></label>
    <form id="challenge-form" class="field">
    <label id="challenge-label" for="challenge-input"></label>
    <div class="row"><input id="challenge-input" autocomplete="one-time-code"><button id="challenge-verify" \
    class="primary">Verify</button></div>
    </form>
    <p id="challenge-notice" class="good" role="status"></p>
    <p id="challenge-timer" class="row"><svg viewBox="0 0 36 36" class="ring" aria-hidden="true">\
    <circle cx="18" cy="18" r="15"></circle><circle id="challenge-ring" cx="18" cy="18" r="15" pathLength="30">\
    </circle></svg><span id="challenge-seconds" role="timer"></span></p>
    <div id="challenge-actions" class="actions"></div>
    </div>
    </section>
    """

  private static let securityPanel = panel(
    .security,
    """
    <h2>Second factor</h2>
    <p id="security-error" class="error" role="alert"></p>
    <p id="security-notice" class="good" role="status"></p>
    <progress id="security-busy" aria-label="Working" hidden></progress>
    <ul id="security-facts" class="cards" aria-label="Second factor of the account"></ul>
    <div id="security-offer" hidden>
    <p>Scan this with an authenticator, or type the secret.</p>
    <svg id="security-picture" class="code" role="img" aria-label="QR code of the secret">\
    <path class="ground"></path><path class="dark"></path></svg>
    <p><code id="security-secret"></code></p>
    </div>
    <div id="security-codes" hidden>
    <p>Keep these backup codes: the server never shows them again.</p>
    <ul id="security-backup" class="codes" aria-label="Backup codes"></ul>
    <div class="actions"><button id="security-copy">Copy</button><button id="security-download">Download</button></div>
    <p id="security-note" role="status"></p>
    </div>
    \(form("security-code", event: "factorCode", label: "Code", button: "Send", isPrimary: true,
           input: #"maxlength="32" autocomplete="one-time-code""#))
    <div id="security-options" class="actions"></div>
    \(form("security-email", event: "factorEmail", label: "Address for codes by e-mail", button: "Send Code",
           input: #"type="email" maxlength="254" autocomplete="email""#))
    <h3 id="security-keys-title">Security keys</h3>
    <ul id="security-keys" class="rows" aria-labelledby="security-keys-title"></ul>
    <h3 id="security-devices-title">Devices that need no code</h3>
    <ul id="security-devices" class="rows" aria-labelledby="security-devices-title"></ul>
    """)

  private static let dashboardPanel = panel(
    .dashboard,
    """
    <h2>Device</h2>
    <ul id="dashboard-cards" class="cards" aria-label="State of the device"></ul>
    <div id="dashboard-actions" class="actions"></div>
    <progress id="dashboard-busy" aria-label="Working" hidden></progress>
    <p id="dashboard-result" role="status"></p>
    \(form("dashboard-code", event: "testCode", label: "Code", button: "Verify",
           input: #"inputmode="numeric" maxlength="12" autocomplete="one-time-code""#))
    """)

  private static let settingsPanel = panel(
    .settings,
    """
    <p id="settings-alert" class="alert" role="alert"></p>
    <h2 id="settings-title"></h2>
    <p id="settings-notice" class="good" role="status"></p>
    <p id="settings-error" class="error" role="alert"></p>
    <progress id="settings-busy" aria-label="Working" hidden></progress>
    <div id="settings-options" class="actions"></div>
    <ul id="settings-facts" class="cards" aria-label="Security of this device"></ul>
    \(form("settings-numberCode", event: "numberCode", label: "Code from the new number", button: "Confirm",
           isPrimary: true, input: #"inputmode="numeric" maxlength="12" autocomplete="one-time-code""#))
    <button id="settings-resend" hidden>Send another code</button>
    \(form("settings-number", event: "changeNumber", label: "Another number for codes", button: "Change",
           input: #"type="tel" autocomplete="tel" placeholder="+15550100""#))
    """)

  // MARK: Phone

  private static let phone: HTML = """
    <aside class="phone" aria-labelledby="phone-model">
    <h2 id="phone-model"></h2>
    <div class="screen">
    <h3>Lock screen</h3>
    <ul id="phone-messages" aria-live="polite"></ul>
    <div id="phone-prompts" aria-live="assertive"></div>
    </div>
    <h3 id="phone-settings" tabindex="-1">Settings of the phone</h3>
    <p id="phone-locked" class="error" role="status"></p>
    <div class="switches">
    \(toggle("passcode", "Passcode"))
    \(toggle("biometryEnrolled", "Face or finger enrolled"))
    \(toggle("simulator", "Simulator"))
    \(choice("biometry", "Sensor", BiometryType.allCases.map { ($0.rawValue, $0.name ?? "none") }))
    \(choice("permission", "Face ID for the app",
             [("notAsked", "not asked yet"), ("allowed", "allowed"), ("denied", "denied")]))
    </div>
    <p class="quiet">How a prompt ends if the system ends it:</p>
    \(choice("interruption", "Error", LocalAuthenticationCode.allCases.map { ("\($0.rawValue)", "\($0.name) (\($0.rawValue))") }))
    </aside>
    """

  private static func toggle(_ event: String, _ label: String) -> HTML {
    """
    <label class="switch"><input type="checkbox" id="phone-\(event)" data-event="\(event)">\
    <span>\(label)</span></label>
    """
  }

  private static func choice(_ event: String, _ label: String, _ options: [(String, String)]) -> HTML {
    """
    <label class="field" for="phone-\(event)">\(label)</label>
    <select id="phone-\(event)" data-event="\(event)">
    \(options.map { value, name in "<option value=\"\(value)\">\(name)</option>" as HTML })
    </select>
    """
  }

  // MARK: Scenarios and log

  private static let scenarios: HTML = """
    <section class="wide" aria-labelledby="scenarios-title">
    <h2 id="scenarios-title">Scenarios</h2>
    <p>Each one runs on a phone of its own, through the gate to the backend.</p>
    <div class="actions"><button id="play-all" class="primary">Play all</button></div>
    <ol id="scenarios"></ol>
    <h3 id="sequence-title"></h3>
    <ol id="sequence" class="sequence" tabindex="0" aria-labelledby="sequence-title"></ol>
    </section>
    """

  private static let log: HTML = """
    <section class="wide" aria-labelledby="log-title">
    <h2 id="log-title">Log</h2>
    <div class="row tools">
    <label for="log-filter">Filter</label><input id="log-filter" type="search">
    <label class="switch"><input type="checkbox" id="log-failures"><span>Failures only</span></label>
    <button id="log-copy">Copy</button><button id="log-clear">Clear</button>
    </div>
    <p id="log-note" role="status"></p>
    <ol id="log" class="log" tabindex="0" aria-label="Lines of the log; the arrow keys go from line to line"></ol>
    </section>
    """
}
