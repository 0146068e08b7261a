internal import ArgumentParser
internal import MFADomain
internal import MFASettings
internal import MFATokens

/// The reason why a command failed, and what to do about it.
struct CommandError: Error {
  /// The exit code, from sysexits(3); 1 if it has no better one.
  enum Status: Int32 {
    case failed = 1
    case noInput = 66
    case unavailable = 69
    case cannotListen = 71
    case noOutput = 74
    case configuration = 78
  }

  let status: Status
  /// Complete lines, each beginning with `error: ` or `hint: `.
  let lines: String

  init(_ status: Status, _ error: String, hint: String? = nil) {
    self.init(status, lines: "error: \(error)" + (hint.map { "\nhint: \($0)" } ?? ""))
  }

  private init(_ status: Status, lines: String) {
    self.status = status
    self.lines = lines
  }

  init(_ error: any Error) {
    switch error {
    case let fault as CommandError: self = fault
    case let faults as SettingsErrors: self.init(.configuration, lines: faults.description)
    case MFARefusal.notFound: self.init(.failed, "no such account or device")
    case let value as InvalidValue: self.init(.failed, "\(value.field) \(value.rule)")
    case let fault as MFAStoreError: self.init(.unavailable, "the database: \(fault.reason)")
    case let fault as Vault.Unopenable:
      self.init(.configuration, fault.reason, hint: "the keys file must contain every key that still seals a data key")
    case let fault as GateKeySource.FetchError: self.init(fault)
    default: self.init(.failed, "\(error)")
    }
  }

  private init(_ fault: GateKeySource.FetchError) {
    switch fault {
    case .unreadable(let path, let reason): self.init(.noInput, "\(path) cannot be read: \(reason)")
    case .unreachable(let url, let reason):
      self.init(
        .unavailable, "cannot fetch the gate's keys from \(url): \(reason)",
        hint: "start the gate first, and check --gate-jwks and --gate-ca")
    case .malformed(let place, let reason):
      self.init(.configuration, "\(place): \(reason)", hint: "use the JWKS that the gate publishes, with an ES256 key")
    }
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
