internal import ArgumentParser
internal import MFADomain
internal import MFASettings
internal import MFATokens

/// The reason why a command failed, and what to do about it.
struct CommandError: Error {
  /// The exit code, from sysexits(3); 1 if it has no better one.
  enum Status: Int32 {
    case failed = 1
    case usage = 64
    case badData = 65
    case noInput = 66
    case unavailable = 69
    case internalError = 70
    case cannotListen = 71
    case cannotCreate = 73
    case noOutput = 74
    case configuration = 78
  }

  let status: Status
  /// Complete lines, each beginning with `error: ` or `hint: `.
  let lines: String

  init(_ status: Status, _ error: String, hint: String? = nil) {
    self.init(status, errors: [error], hints: [hint].compactMap(\.self))
  }

  init(_ status: Status, errors: [String], hints: [String]) {
    self.status = status
    lines = (errors.map { "error: \($0)" } + hints.map { "hint: \($0)" }).joined(separator: "\n")
  }

  init(_ error: any Error) {
    switch error {
    case let fault as CommandError: self = fault
    case let faults as SettingsErrors:
      self.init(.configuration, errors: faults.faults.map(\.description), hints: Self.hints(for: faults.faults))
    case MFARefusal.notFound:
      self.init(.failed, "no such account or device", hint: "mfa-backend admin users lists the accounts")
    case let value as InvalidValue: self.init(.failed, "\(value.field) \(value.rule)")
    case let fault as MFAStoreError:
      self.init(
        .unavailable, "the database: \(fault.reason)",
        hint: "check the setting database, and that the server runs and this user may connect")
    case let fault as Vault.Unopenable:
      self.init(.configuration, fault.reason, hint: "the keys file must contain every key that still seals a data key")
    case let fault as GateKeySource.FetchError: self.init(fault)
    case let refusal as MFARefusal: self.init(.failed, "refused: \(refusal.cause)")
    default: self.init(.internalError, "unexpected: \(error)", hint: "report this as a bug")
    }
  }

  /// What to do about faults of the settings: each hint once.
  static func hints(for faults: [SettingsError]) -> [String] {
    faults.map {
      $0.hint
        ?? ($0.key == nil
          ? "correct the file, or name another one with -c"
          : "mfa-backend check --reference lists every key with its values")
    }.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  private init(_ fault: GateKeySource.FetchError) {
    switch fault {
    case .unreadable:
      self.init(.noInput, "\(fault)", hint: "check gate.jwks and gate.ca_file (--gate-jwks and --gate-ca)")
    case .unreachable:
      self.init(
        .unavailable, "\(fault)", hint: "start the gate, and check gate.jwks and gate.ca_file")
    case .malformed:
      self.init(.configuration, "\(fault)", hint: "use the JWKS that the gate publishes, with an ES256 key")
    }
  }

  /// The first error, without its prefix.
  var reason: String {
    String(lines.prefix { !$0.isNewline }.dropFirst("error: ".count))
  }

  /// The first hint, without its prefix.
  var hint: String? {
    lines.split(whereSeparator: \.isNewline).first { $0.hasPrefix("hint: ") }.map { String($0.dropFirst(6)) }
  }

  /// Prints the lines to standard error and returns the exit code for the command-line parser.
  func told() -> ExitCode {
    BackendConsole.error(lines)
    return ExitCode(status.rawValue)
  }
}

extension CommandError {
  /// Runs `body`. Prints the error that it throws as lines for people and exits with the matching code.
  static func telling(_ body: () async throws -> Void) async throws {
    do {
      try await body()
    } catch let code as ExitCode {
      throw code
    } catch let usage as ValidationError {
      throw usage
    } catch {
      throw CommandError(error).told()
    }
  }
}
