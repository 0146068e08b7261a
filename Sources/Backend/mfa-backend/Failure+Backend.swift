internal import Commands
internal import ConfigurationEngine
internal import MFADomain
internal import MFAService

extension Failure {
  /// What an error of the backend means to its operator.
  init(of error: any Error) {
    switch error {
    case let failure as Failure: self = failure
    case let errors as ConfigurationErrors: self.init(.configuration, errors.messages)
    case MFARefusal.notFound:
      self.init(.noInput, "no such account or device", hint: "mfa-backend admin users lists the accounts")
    case let value as InvalidValue: self.init(.problems, "\(value.field) \(value.rule)")
    case let fault as MFAStoreError:
      self.init(
        .unavailable, "the database: \(fault.reason)",
        hint: "check the setting database, and that the server runs and this user may connect")
    case let fault as Vault.Unopenable:
      self.init(.configuration, fault.reason, hint: "the keys file must contain every key that still seals a data key")
    case let fault as GateKeySource.FetchError: self.init(fault)
    case let refusal as MFARefusal: self.init(.problems, "refused: \(refusal.cause)")
    default: self.init(.internalError, "unexpected: \(error)", hint: "report this as a bug")
    }
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
}
