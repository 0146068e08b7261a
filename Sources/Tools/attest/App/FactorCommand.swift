internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFAClient
internal import MFAViewModels
internal import MFAWire
internal import QREncoding
internal import SimulatedPhone

/// The second factor of an account, as its owner manages it.
struct FactorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "factor",
    abstract: "Set up, show and switch off the second factor of the account.",
    discussion: """
      All of these need a session: `attest signin URL` begins one. `attest verify` gives a code at a sign-in. Example:
        attest factor setup wss://localhost:6200/ --authority DIR
        attest factor confirm wss://localhost:6200/ 123456 --authority DIR
      """,
    subcommands: [
      FactorSetupCommand.self, FactorConfirmCommand.self, FactorStatusCommand.self, FactorBackupCodesCommand.self,
      FactorAppsCommand.self, FactorAddAppCommand.self, FactorConfirmAppCommand.self, FactorRenameAppCommand.self,
      FactorRemoveAppCommand.self, FactorEmailCommand.self, FactorKeysCommand.self, FactorAddKeyCommand.self,
      FactorRemoveKeyCommand.self,
      FactorOffCommand.self,
    ])
}

struct FactorSetupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "setup",
    abstract: "Make a secret for an authenticator, and backup codes.",
    discussion: """
      Prints the secret, its otpauth URI and the backup codes, which the server never shows again; on a terminal the QR
      code, too. They are in force after `attest factor confirm`. Example:
        attest factor setup wss://localhost:6200/ --authority DIR
        attest factor setup wss://localhost:6200/ --authority DIR --json
      """)

  @OptionGroup var options: AppOptions

  func run() async throws {
    let app = try await MobileApp(options)
    app.print(try await app.call(MFAOperations.enrollAuthenticator, AuthenticatorRequest())) { offer in
      let codes = offer.backup_codes.map { "  \(TerminalText.printable($0))\n" }.joined()
      return """
        \(MobileApp.authenticatorText(secret: offer.secret, uri: offer.qr_code_url))backup codes:
        \(codes)
        """
    }
    if !options.global.json {
      StandardError.write("hint: `attest factor confirm URL CODE` with the first code of the authenticator\n")
    }
  }
}

struct FactorConfirmCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "confirm",
    abstract: "Give the first code of the authenticator; from then on the account has a second factor.",
    discussion: """
      Example:
        attest factor confirm wss://localhost:6200/ 123456 --authority DIR
      """)

  @OptionGroup var options: AppOptions

  @Argument(help: "The code that the authenticator shows.")
  var code: String

  func run() async throws {
    let app = try await MobileApp(options)
    app.report(try await app.call(MFAOperations.confirmAuthenticator, CodeRequest(code: code)))
  }
}

struct FactorStatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the second factor: its kinds of codes, backup codes and trusted devices.",
    discussion: """
      Example:
        attest factor status wss://localhost:6200/ --authority DIR
      """)

  @OptionGroup var options: AppOptions

  func run() async throws {
    let app = try await MobileApp(options)
    app.print(try await app.call(MFAOperations.status, EmptyRequest())) { status in
      let kinds = status.methods.map(TerminalText.printable).joined(separator: ", ")
      let end = status.in_grace_period ? status.grace_period_end : nil
      let needed = "needed \(end.map { "from \(TerminalText.printable($0)) on" } ?? "now"): `attest factor setup URL`"
      let off = status.required ? "off, \(needed)" : "off"
      let lines = [
        ("second factor", status.enabled ? "on" : off), ("kinds of codes", kinds.isEmpty ? "none" : kinds),
        ("backup codes left", String(status.backup_codes_remaining)),
        ("security keys", String(status.security_keys_count)),
        ("trusted devices", String(status.trusted_devices_count)),
        ("this device is trusted", status.device_trusted ? "yes" : "no"),
        ("this session needs a code", status.challenge_required ? "yes" : "no"),
      ]
      return lines.map { "\($0): \($1)\n" }.joined()
    }
  }
}

struct FactorBackupCodesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup-codes",
    abstract: "Replace all backup codes by new ones, which are shown once.",
    discussion: """
      Example:
        attest factor backup-codes wss://localhost:6200/ 123456 --authority DIR
      """)

  @OptionGroup var options: AppOptions

  @Argument(help: "A code of the second factor.")
  var code: String

  func run() async throws {
    let app = try await MobileApp(options)
    app.print(try await app.call(MFAOperations.regenerateBackupCodes, CodeRequest(code: code))) { codes in
      codes.backup_codes.map { TerminalText.printable($0) + "\n" }.joined()
    }
  }
}

struct FactorOffCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "off",
    abstract: "Switch the second factor off; the secret, the backup codes and all trust are deleted.",
    discussion: """
      Example:
        attest factor off wss://localhost:6200/ 123456 --authority DIR
      """)

  @OptionGroup var options: AppOptions

  @Argument(help: "A code of the second factor.")
  var code: String

  func run() async throws {
    let app = try await MobileApp(options)
    let answer = try await app.call(MFAOperations.disableAuthenticator, CodeRequest(code: code))
    try? app.services.trust.save(nil)
    app.report(answer)
  }
}

extension MobileApp {
  /// Performs an operation in the session of the user.
  func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request
  ) async throws(Failure) -> Response {
    do throws(NetworkError) {
      return try await services.session.call(operation, request)
    } catch {
      throw failure("\(error)", needsSignIn: error.needsSignIn)
    }
  }

  /// Prints the server's sentence.
  func report(_ answer: MessageResponse) { print(answer) { TerminalText.printable($0.message) + "\n" } }

  /// Prints an answer: with --json as it is, otherwise as `text` has it.
  func print<Answer: Encodable>(_ answer: Answer, as text: (Answer) -> String) {
    if printsJSON { JSONOutput.print(answer) } else { StandardOutput.write(text(answer)) }
  }

  /// Returns the lines for a new authenticator, on a terminal with the QR code.
  static func authenticatorText(secret: String, uri: String) -> String {
    let picture = StandardOutput.isTerminal ? try? QRCode(uri).terminalText() : nil
    return (picture ?? "") + "secret: \(TerminalText.printable(secret))\nuri: \(TerminalText.printable(uri))\n"
  }

  /// Prints the fields of `rows` with tabs between them, a line for each.
  static func table(_ rows: [[String]]) -> String {
    rows.map { $0.map(TerminalText.printable).joined(separator: "\t") + "\n" }.joined()
  }
}

struct FactorKeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys",
    abstract: "List the security keys of the account, oldest first.",
    discussion: """
      One line for each: id, name, registration and last use, separated by tabs. Example:
        attest factor keys wss://localhost:6200/ --authority DIR
      """)

  @OptionGroup var options: AppOptions

  func run() async throws {
    let app = try await MobileApp(options)
    app.print(try await app.call(MFAOperations.securityKeys, EmptyRequest())) { list in
      MobileApp.table(list.keys.map { [$0.id, $0.name, $0.createdAt, $0.lastUsedAt ?? "never"] })
    }
  }
}

struct FactorAddKeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add-key",
    abstract: "Register the security key at the simulated phone.",
    discussion: """
      The prompt to touch it is answered on the terminal or by --answers. `attest verify --kind security-key` signs in
      with it. Example:
        attest factor add-key wss://localhost:6200/ --authority DIR --answers approve
      """)

  @OptionGroup var options: AppOptions

  @Option(help: "The name of the key in the list.")
  var name = "Security key"

  func run() async throws {
    let app = try await MobileApp(options)
    let creation = try await app.call(MFAOperations.registrationOptions, EmptyRequest())
    var credential: RegistrationRequest
    do throws(SecurityKeyError) {
      credential = try await app.phone.register(creation)
    } catch {
      throw app.failure("\(error)")
    }
    credential.name = name
    app.print(try await app.call(MFAOperations.registerSecurityKey, credential)) { key in
      MobileApp.table([[key.id, key.name]])
    }
  }
}

struct FactorRemoveKeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove-key",
    abstract: "Remove a security key from the account.",
    discussion: """
      Example:
        attest factor remove-key wss://localhost:6200/ ID --authority DIR
      """)

  @OptionGroup var options: AppOptions

  @Argument(help: "The id of the key, as `attest factor keys` shows it.")
  var id: String

  func run() async throws {
    let app = try await MobileApp(options)
    app.report(try await app.call(MFAOperations.removeSecurityKey, SecurityKeyRequest(id: id)))
  }
}
