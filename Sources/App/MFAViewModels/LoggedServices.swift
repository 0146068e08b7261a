internal import MFAClient
internal import MFAWire

extension DeviceServices {
  /// The same services, which write a line to `log` for each prompt, each use of a key and each request.
  ///
  /// Use the result in place of these services, not together with them: each of the two renews the session and changes
  /// the enrolment without waiting for the other.
  public func logged(to log: EventLog) -> DeviceServices {
    DeviceServices(
      keychain: LoggedKeychain(keychain: keychain, log: log),
      biometrics: LoggedBiometrics(biometrics: biometrics, log: log),
      securityKeys: securityKeys.map { LoggedSecurityKeys(securityKeys: $0, log: log) },
      backend: LoggedBackend(backend: backend, log: log), storage: storage, sessions: sessions,
      trust: trust, app: app)
  }
}

private struct LoggedKeychain: KeychainService {
  let keychain: any KeychainService
  let log: EventLog

  func hasSecureEnclave() async -> Bool { await keychain.hasSecureEnclave() }

  func createKey(_ tag: KeyTag, protection: KeyProtection) async throws(DeviceSecurityError) -> KeyPair {
    try await log.noting("Make a key", "\(tag), \(protection.rawValue)") { () async throws(DeviceSecurityError) in
      try await keychain.createKey(tag, protection: protection)
    }
  }

  func key(_ tag: KeyTag) async throws(DeviceSecurityError) -> KeyPair? { try await keychain.key(tag) }

  func deleteKey(_ tag: KeyTag) async throws(DeviceSecurityError) {
    // A deletion where no key is, is not an event. A key that cannot be read is deleted as without a log.
    do throws(DeviceSecurityError) {
      guard try await keychain.key(tag) != nil else { return }
    } catch {}
    try await log.noting("Delete a key", "\(tag)") { () async throws(DeviceSecurityError) in
      try await keychain.deleteKey(tag)
    }
  }

  func sign(
    _ message: [UInt8], with tag: KeyTag, reason: String
  ) async throws(DeviceSecurityError) -> [UInt8] {
    try await log.noting("Sign", "\(tag): \(reason)") { () async throws(DeviceSecurityError) in
      try await keychain.sign(message, with: tag, reason: reason)
    }
  }
}

private struct LoggedBiometrics: BiometricService {
  let biometrics: any BiometricService
  let log: EventLog

  func capability() async -> DeviceCapability { await biometrics.capability() }
  func biometryType() async -> BiometryType { await biometrics.biometryType() }

  func evaluate(_ policy: BiometricPolicy, reason: String) async throws(DeviceSecurityError) {
    try await log.noting("Prompt of the app", reason) { () async throws(DeviceSecurityError) in
      try await biometrics.evaluate(policy, reason: reason)
    }
  }
}

private struct LoggedSecurityKeys: SecurityKeyService {
  let securityKeys: any SecurityKeyService
  let log: EventLog

  func register(_ options: CredentialCreationOptions) async throws(SecurityKeyError) -> RegistrationRequest {
    try await noting("Register a security key", options.rp.id) { () async throws(SecurityKeyError) in
      try await securityKeys.register(options)
    }
  }

  func prove(_ options: CredentialRequestOptions) async throws(SecurityKeyError) -> AuthenticationRequest {
    try await noting("Use a security key", options.rpId) { () async throws(SecurityKeyError) in
      try await securityKeys.prove(options)
    }
  }

  /// Calls `body` and writes how it ended.
  private func noting<Value>(
    _ title: String, _ domain: String, _ body: () async throws(SecurityKeyError) -> Value
  ) async throws(SecurityKeyError) -> Value {
    do throws(SecurityKeyError) {
      let value = try await body()
      log.add(.phone, title, .success, domain)
      return value
    } catch {
      log.add(.phone, title, .failure, "\(domain): \(error)")
      throw error
    }
  }
}

private struct LoggedBackend: MFABackend {
  let backend: any MFABackend
  let log: EventLog

  func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
  ) async throws(NetworkError) -> Response {
    do throws(NetworkError) {
      let response = try await backend.call(operation, request, token: token)
      log.add(.server, operation.name, .success, "\(operation.method.rawValue) \(operation.path)")
      return response
    } catch {
      log.add(.server, operation.name, .failure, error.logText)
      throw error
    }
  }
}

extension EventLog {
  /// Calls `body` and writes how it ended.
  fileprivate func noting<Value>(
    _ title: String, _ detail: String, _ body: () async throws(DeviceSecurityError) -> Value
  ) async throws(DeviceSecurityError) -> Value {
    do throws(DeviceSecurityError) {
      let value = try await body()
      add(.phone, title, .success, detail)
      return value
    } catch {
      // The text for the user of a phone with a passcode, so that the line has the words of the table.
      let advice = error.advice(in: .signIn, capability: .passcodeOnly)
      add(.phone, title, .failure, "\(error): \(advice.text)")
      throw error
    }
  }
}

extension NetworkError {
  /// Who refused, with code and text.
  fileprivate var logText: String {
    switch self {
    case .gate(let error): "gate: \(error)"
    case .refused(let refusal): "backend: \(refusal.code): \(refusal.message) (request \(refusal.requestID))"
    case .malformed: "\(self)"
    }
  }
}
