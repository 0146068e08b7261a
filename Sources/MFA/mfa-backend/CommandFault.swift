internal import ArgumentParser
internal import MFADomain
internal import MFASettings
internal import MFATokens

/// Why a command did not do what it was told: what is wrong, and what to do about it.
struct CommandFault: Error {
  /// How the command ends; 1 where sysexits(3) has nothing better.
  enum Status: Int32 {
    case failed = 1
    case noInput = 66
    case unavailable = 69
    case cannotListen = 71
    case noOutput = 74
    case configuration = 78
  }

  let status: Status
  /// Whole lines, each with its `error: ` or `hint: `.
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
    case let fault as CommandFault: self = fault
    case let faults as SettingsFaults: self.init(.configuration, lines: faults.description)
    case MFARefusal.notFound: self.init(.failed, "no such account or device")
    case let value as InvalidValue: self.init(.failed, "\(value.field) \(value.rule)")
    case let fault as StoreFault: self.init(.unavailable, "the database: \(fault.reason)")
    case let fault as Vault.Unopenable:
      self.init(.configuration, fault.reason, hint: "the keys file must hold every key that still seals a data key")
    case let fault as GateKeySource.Fault: self.init(fault)
    default: self.init(.failed, "\(error)")
    }
  }

  private init(_ fault: GateKeySource.Fault) {
    switch fault {
    case .unreadable(let path, let reason): self.init(.noInput, "\(path) cannot be read: \(reason)")
    case .unreachable(let url, let reason):
      self.init(
        .unavailable, "the gate's keys cannot be had from \(url): \(reason)",
        hint: "start the gate first, and look at --gate-jwks and --gate-ca")
    case .malformed(let place, let reason):
      self.init(.configuration, "\(place): \(reason)", hint: "a JWKS with an ES256 key is what the gate publishes")
    }
  }

  /// Says it on standard error, and gives what the command line parser is to end with.
  func told() -> ExitCode {
    BackendConsole.error(lines)
    return ExitCode(status.rawValue)
  }
}

extension CommandFault {
  /// Does `body`. What it throws is told in lines for people, and the command ends with the status that belongs to it.
  static func telling(_ body: () async throws -> Void) async throws {
    do {
      try await body()
    } catch let code as ExitCode {
      throw code
    } catch let usage as ValidationError {
      throw usage
    } catch {
      throw CommandFault(error).told()
    }
  }
}
