internal import ArgumentParser
internal import ByteCoding
internal import CommandSupport
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
      FactorAddKeyCommand.self, FactorRemoveKeyCommand.self, FactorOffCommand.self,
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
    let offer = try await MobileApp(options).call(MFAOperations.enrollAuthenticator, AuthenticatorRequest())
    if options.global.json {
      JSONOutput.print(offer)
      return
    }
    let uri = TerminalText.printable(offer.qr_code_url)
    let picture = StandardOutput.isTerminal ? try? QRCode(offer.qr_code_url).terminalText() : nil
    let codes = offer.backup_codes.map { "  \(TerminalText.printable($0))\n" }.joined()
    StandardOutput.write(
      """
      \(picture ?? "")secret: \(TerminalText.printable(offer.secret))
      uri: \(uri)
      backup codes:
      \(codes)
      """)
    StandardError.write("hint: `attest factor confirm URL CODE` with the first code of the authenticator\n")
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
    app.report(try await app.call(MFAOperations.confirmAuthenticator, CodeRequest(code: code)), options.global)
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
    let status = try await MobileApp(options).call(MFAOperations.status, EmptyRequest())
    if options.global.json {
      JSONOutput.print(status)
      return
    }
    let kinds = status.methods.map(TerminalText.printable).joined(separator: ", ")
    let lines = [
      ("second factor", status.enabled ? "on" : "off"), ("kinds of codes", kinds.isEmpty ? "none" : kinds),
      ("backup codes left", String(status.backup_codes_remaining)),
      ("security keys", String(status.security_keys_count)),
      ("trusted devices", String(status.trusted_devices_count)),
      ("this device is trusted", status.device_trusted ? "yes" : "no"),
      ("this session needs a code", status.challenge_required ? "yes" : "no"),
    ]
    StandardOutput.write(lines.map { "\($0): \($1)\n" }.joined())
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
    let codes = try await MobileApp(options).call(MFAOperations.regenerateBackupCodes, CodeRequest(code: code))
    if options.global.json {
      JSONOutput.print(codes)
    } else {
      StandardOutput.write(codes.backup_codes.map { TerminalText.printable($0) + "\n" }.joined())
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
    app.report(answer, options.global)
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
  func report(_ answer: MessageResponse, _ options: GlobalOptions) {
    if options.json {
      JSONOutput.print(answer)
    } else {
      StandardOutput.write(TerminalText.printable(answer.message) + "\n")
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
    do throws(SecurityKeyError) { credential = try await app.phone.register(creation) } catch {
      throw app.failure("\(error)")
    }
    credential.name = name
    let entry = try await app.call(MFAOperations.registerSecurityKey, credential)
    if options.global.json {
      JSONOutput.print(entry)
    } else {
      StandardOutput.write("\(TerminalText.printable(entry.id)): \(TerminalText.printable(entry.name))\n")
    }
  }
}

struct FactorRemoveKeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove-key",
    abstract: "Remove a security key from the account, or list them.",
    discussion: """
      Example:
        attest factor remove-key wss://localhost:6200/ --authority DIR
        attest factor remove-key wss://localhost:6200/ ID --authority DIR
      """)

  @OptionGroup var options: AppOptions

  @Argument(help: "The identifier of the key; without it, the keys are listed.")
  var id: String?

  func run() async throws {
    let app = try await MobileApp(options)
    if let id {
      app.report(try await app.call(MFAOperations.removeSecurityKey, SecurityKeyRequest(id: id)), options.global)
      return
    }
    let list = try await app.call(MFAOperations.securityKeys, EmptyRequest())
    if options.global.json {
      JSONOutput.print(list)
    } else {
      for key in list.keys {
        let used = key.lastUsedAt.map { "last used " + TerminalText.printable($0) } ?? "never used"
        StandardOutput.write("\(TerminalText.printable(key.id)): \(TerminalText.printable(key.name)), \(used)\n")
      }
    }
  }
}
