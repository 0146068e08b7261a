internal import ByteCoding

/// Why a trusted device is asked for the second factor all the same.
enum StepUp: Sendable, Hashable {
  /// It has not been used from this network before, and is trusted where it was used alone.
  case elsewhere
  case risk(Risk)

  /// What the history says of it.
  var detail: [String] {
    switch self {
    case .elsewhere: ["reason=network"]
    case .risk(let risk): ["reason=risk", "score=\(risk.score)", "signals=\(risk.words)"]
    }
  }
}

extension NetworkRecords where Self: AuditRecords {
  /// What asks for the second factor where `trusted` would spare it to `device` of `user`; `nil` if nothing does.
  func stepUp(
    for user: User, trusted: TrustedDevice, device: Device?, _ policy: Policy, by caller: Caller, at now: Timestamp
  ) throws -> StepUp? {
    let network = NetworkPrefix(caller.identity.clientAddress)?.text
    if policy.bindsTrustToNetwork,
      try network.map({ try isKnown(network: $0, of: user.id, by: trusted.binding) }) != true
    {
      return .elsewhere
    }
    guard let threshold = policy.stepUpScore else { return nil }
    var signals: Set<Risk.Signal> = []
    if try network.map({ try isKnown(network: $0, of: user.id, by: nil) }) != true { signals.insert(.network) }
    let windowAgo = now.advanced(by: RefusalTally.window * -1)
    if try countRefusals(AuditEvent.ofSignIns, at: user.username.key, since: windowAgo) >= Risk.manyFailures {
      signals.insert(.failures)
    }
    if let device, now.since(device.enrolledAt) < Risk.newDeviceAge { signals.insert(.newDevice) }
    if caller.identity.environment == .development { signals.insert(.development) }
    let risk = Risk(signals: signals)
    return risk.score >= threshold ? .risk(risk) : nil
  }

  /// Remembers the network from which the user has completed a sign-in, if the policy needs it.
  func remember(_ address: String, of user: User, _ binding: Binding, _ policy: Policy, at now: Timestamp) throws {
    guard policy.watchesNetworks, let network = NetworkPrefix(address) else { return }
    try saw(network: network.text, of: user.id, by: binding, at: now)
  }
}

extension Policy {
  /// Whether anything depends on where sign-ins come from. If nothing does, nothing of it is kept.
  var watchesNetworks: Bool { bindsTrustToNetwork || stepUpScore != nil }
}

extension AuditEvent {
  /// The refusals that an attacker's sign-ins leave at an account.
  fileprivate static let ofSignIns: [AuditEvent] = [
    .signatureRefused, .codeRefused, .codeThrottled, .trustRefused, .recoveryRefused, .securityKeyRefused,
  ]
}
