/// The fields of a request with which an app instance proves itself to the gate.
enum AssertionField: String, CaseIterable {
  case keyID = "X-App-Assert-KeyId"
  case data = "X-App-Assert-Data"
  case nonce = "X-App-Assert-Nonce"

  /// The name of the security scheme.
  var scheme: String {
    switch self {
    case .keyID: "assertKeyId"
    case .data: "assertData"
    case .nonce: "assertNonce"
    }
  }

  var summary: String {
    switch self {
    case .keyID: "The id of the app instance's attested key, in base64."
    case .data: "The App Attest assertion over the nonce, in base64."
    case .nonce: "A nonce of the gate's GET /attest/challenge, valid once."
    }
  }
}

/// The groups of operations in documents.
enum OperationTag: String, CaseIterable {
  case devices, signIn = "sign-in", identityProvider = "identity-provider", secondFactor = "second-factor"
  case securityKeys = "security-keys"
  case push, sessions, notices, recovery, administration

  var summary: String {
    switch self {
    case .devices: "Enrolling devices and changing how they sign in."
    case .signIn: "Signing in with a device."
    case .identityProvider: "Signing in with an identity provider."
    case .secondFactor: "Authenticators, codes by e-mail, backup codes and trusted devices."
    case .securityKeys: "Security keys (WebAuthn)."
    case .push: "Approval of a sign-in on another device."
    case .sessions: "Renewing and revoking tokens."
    case .notices: "What happened to the account."
    case .recovery: "Recovery by a backup code."
    case .administration: "Accounts of others, for admins."
    }
  }
}

extension Operation {
  /// The group of the operation.
  var tag: OperationTag {
    let parts = name.split(separator: ".", maxSplits: 1)
    return switch parts.first {
    case "admin": .administration
    case "device", "devices": .devices
    case "notices": .notices
    case "push": .push
    case "recovery": .recovery
    case "webauthn": .securityKeys
    case "auth" where parts.last?.hasPrefix("oidc") == true: .identityProvider
    case "auth": ["refresh", "revoke"].contains(parts.last) ? .sessions : .signIn
    default: ["enroll", "unenroll", "upgrade", "downgrade", "link"].contains(parts.last) ? .devices : .secondFactor
    }
  }
}
