internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFAClient
internal import MFAViewModels
internal import MFAWire

struct SignInCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "signin",
    abstract: "Sign in as the device is enrolled: by its key or by a code.",
    discussion: """
      The session is kept for `attest verify`, `upgrade` and `unenroll`. --token prints the access token for other \
      programs. A code is asked for on the terminal, or found with --messages. Example:
        attest signin wss://localhost:6200/ --authority DIR --answers approve
        token=$(attest signin wss://localhost:6200/ --authority DIR \\
          --answers approve --token)
        attest headers wss://localhost:6200/ --authority DIR > headers
        curl --cacert DIR/tls-ca.pem -H @headers --oauth2-bearer "$token" \\
          https://localhost:6200/api/v1/auth/mfa/status
      """)

  @OptionGroup var options: AppOptions

  @Option(help: ArgumentHelp("The log of the backend, in which the phone finds its codes.", valueName: "file"))
  var messages: String?

  @Flag(help: "Print the access token instead of a sentence.")
  var token = false

  func validate() throws {
    guard !token || !options.global.json else { throw ValidationError("--token and --json exclude each other") }
  }

  func run() async throws {
    let app = try await MobileApp(options, needsAccount: true)
    let inbox = try messages.map { path throws(Failure) in try LabInbox.open(path) }
    let number = app.services.app.phoneNumber
    let seen = number.flatMap { try? inbox?.codes(to: $0).count } ?? 0
    let model = SignInViewModel(services: app.services)
    if let user = options.user { await model.enter(username: user) }
    await model.choose(.signIn)
    if await model.state.phase == .enteringCode {
      guard let code = try await code(app, after: seen, in: inbox) else {
        throw Failure(
          .noInput,
          messages == nil
            ? "the server has sent a code, and there is no terminal to enter it" : "no code came to the log",
          hint: "--messages FILE names the log of a backend that writes codes to it")
      }
      await model.enter(code: code)
    }
    let state = await model.state
    guard case .signedIn(let needsSecondFactor) = state.phase, let session = await app.services.session.session
    else {
      throw app.failure(state.errorText, advice: state.advice)
    }
    if token {
      StandardOutput.write(session.accessToken + "\n")
    } else if options.global.json {
      JSONOutput.print(["user": state.username, "scope": session.scope])
    } else {
      var rest = ""
      if needsSecondFactor {
        rest = "; the second factor is missing: `attest verify URL \(await secondFactor(of: app))`"
      } else if session.scope == "mfa_setup" {
        rest = "; the account must have a second factor: `attest factor setup URL`"
      }
      StandardOutput.write("signed in as \(TerminalText.printable(state.username))\(rest)\n")
    }
  }

  /// The argument of `attest verify` for the account: a code, or a security key if it has nothing else.
  private func secondFactor(of app: MobileApp) async -> String {
    let status = try? await app.services.session.call(MFAOperations.status, EmptyRequest())
    return status?.methods == ["webauthn"] ? "--kind security-key" : "CODE"
  }

  /// The code that the phone receives after `count` earlier ones; `nil` without a terminal, and if the log has none.
  ///
  /// The server answers the begin of a sign-in alike if a limit keeps it from sending a code. If none comes, the server
  /// is asked for one: then the last one counts if it is new and unused, or another one comes, or the server refuses.
  ///
  /// - Throws: a failure that says when to try again if no code is sent because of a limit.
  private func code(_ app: MobileApp, after count: Int, in inbox: LogMessages?) async throws(Failure) -> String? {
    guard let inbox, let number = app.services.app.phoneNumber else { return try await app.console.ask("Code:") }
    if let code = try await newCode(to: number, after: count, in: inbox, tries: count > 0 ? 100 : 500) { return code }
    do throws(NetworkError) {
      _ = try await app.services.backend.call(
        MFAOperations.requestOTP, RequestOTPRequest(username: app.services.app.username, phoneNumber: number))
    } catch {
      guard case .refused(let refusal) = error, refusal.code == "rate_limited" else { throw app.failure("\(error)") }
      let wait = refusal.retryAfter.map { "in \($0.components.seconds) s" } ?? "later"
      throw Failure(.refused, "no new code came: the server may not send another one yet", hint: "try again \(wait)")
    }
    if let code = try await newCode(to: number, after: count, in: inbox, tries: 200) { return code }
    do throws(MessageSourceError) {
      return try inbox.codes(to: number).last
    } catch {
      throw Failure(.noInput, "\(error)")
    }
  }

  /// The newest code to `number` once there are more than `count`; `nil` if none comes.
  ///
  /// - Parameter tries: How often the log is read, every 10 ms.
  private func newCode(
    to number: String, after count: Int, in inbox: LogMessages, tries: Int
  ) async throws(Failure) -> String? {
    for _ in 0..<tries {
      do throws(MessageSourceError) {
        let codes = try inbox.codes(to: number)
        if codes.count > count { return codes.last }
      } catch {
        throw Failure(.noInput, "\(error)")
      }
      try? await Task.sleep(for: .milliseconds(10))
    }
    return nil
  }
}

struct VerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Give the second factor of the session: a code, or the touch of a security key.",
    discussion: """
      Example:
        attest verify wss://localhost:6200/ 123456 --authority DIR
        attest verify wss://localhost:6200/ ABCD2345 --authority DIR --kind backup
        attest verify wss://localhost:6200/ --authority DIR --kind email
        attest verify wss://localhost:6200/ --authority DIR --kind security-key
      Without a code, `--kind email` asks the server to send one.
      """)

  enum Kind: String, CaseIterable, ExpressibleByArgument {
    case totp
    case email
    case backup
    case securityKey = "security-key"

    var tab: ChallengeState.Tab {
      switch self {
      case .totp: .totp
      case .email: .email
      case .backup: .backup
      case .securityKey: .securityKey
      }
    }
  }

  @OptionGroup var options: AppOptions

  @Argument(help: "The code; without it, the server sends one by e-mail.")
  var code: String?

  @Option(help: "The kind of the code: totp, email or backup; or security-key, which needs none.")
  var kind = Kind.totp

  @Flag(help: "Remember this device: for 30 days, `attest signin` needs no second factor.")
  var trust = false

  func validate() throws {
    if kind == .securityKey, code != nil { throw ValidationError("a security key needs no code") }
    guard code != nil || kind == .email || kind == .securityKey else {
      throw ValidationError("which code? Only --kind email sends one")
    }
  }

  func run() async throws {
    let app = try await MobileApp(options)
    guard let session = await app.services.session.session else {
      throw Failure(.noInput, "there is no session", hint: "`attest signin URL` begins one")
    }
    let model = ChallengeViewModel(services: app.services, token: session.accessToken)
    await model.appear(at: .now())
    await model.select(kind.tab)
    await model.setRemembersDevice(trust)
    var state = await model.state
    if state.phase == .notRequired {
      throw Failure(.refused, "the session of \(session.username) needs no second factor")
    }
    if kind == .securityKey {
      guard state.canUseSecurityKey else {
        throw Failure(
          .refused, state.errorText ?? "the account has no security key", hint: "`attest factor add-key URL` adds one")
      }
      await model.useSecurityKey()
    } else {
      guard try await verify(app, model) else {
        if options.global.json {
          // The session has the rights that it had.
          JSONOutput.print(["user": session.username, "scope": session.scope])
        } else {
          StandardOutput.write("a code was sent: give it with `attest verify URL CODE --kind email`\n")
        }
        return
      }
    }
    state = await model.state
    guard state.phase == .verified else { throw app.failure(state.errorText) }
    if options.global.json {
      JSONOutput.print(["user": session.username, "scope": "full"])
    } else {
      StandardOutput.write("verified \(TerminalText.printable(session.username))\n")
    }
  }

  /// Sends the code. Returns `false` if the server has sent one by e-mail that cannot be entered here.
  private func verify(_ app: MobileApp, _ model: ChallengeViewModel) async throws(Failure) -> Bool {
    var given = code
    if given == nil { given = try await sentCode(app, model) }
    guard let code = given else { return false }
    await model.enter(code)
    let state = await model.state
    guard state.canSubmit else {
      guard state.phase == .entering else { throw app.failure(state.errorText) }
      throw Failure(
        .usage, state.errorText ?? "not a code of this kind or account",
        hint: "a code of --kind \(kind.rawValue) has \(kind.tab.codeLength) characters")
    }
    await model.verify()
    return true
  }

  /// The code that the server sends by e-mail, as the user enters it; `nil` without a terminal.
  private func sentCode(_ app: MobileApp, _ model: ChallengeViewModel) async throws(Failure) -> String? {
    await model.sendEmail()
    let state = await model.state
    guard state.selectedTab == .email, state.errorText == nil else {
      throw app.failure(state.errorText ?? "the account gets no codes by e-mail")
    }
    return try await app.console.ask("Code:")
  }
}
