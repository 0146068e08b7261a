internal import ByteCoding

/// The reason why a trusted device must give the second factor.
enum StepUp: Sendable, Hashable {
  /// The device was not used from this network before, and trust is limited to known networks.
  case elsewhere
  case risk(Risk)

  /// The detail of the history's entry.
  var detail: [String] {
    switch self {
    case .elsewhere: ["reason=network"]
    case .risk(let risk): ["reason=risk", "score=\(risk.score)", "signals=\(risk.words)"]
    }
  }
}

extension UnitOfWork where Initiator == Caller {
  /// The reason why `device` of `user` must give the second factor despite `trusted`; `nil` if there is none.
  func stepUp(for user: User, trusted: TrustedDevice, device: Device?) throws -> StepUp? {
    let network = NetworkPrefix(caller.identity.clientAddress)?.text
    if policy.bindsTrustToNetwork,
      try network.map({ try records.isKnown(network: $0, of: user.id, by: trusted.binding) }) != true
    {
      return .elsewhere
    }
    guard let threshold = policy.stepUpScore else { return nil }
    var signals: Set<Risk.Signal> = []
    if try network.map({ try records.isKnown(network: $0, of: user.id, by: nil) }) != true { signals.insert(.network) }
    let windowAgo = now.advanced(by: RefusalTally.window * -1)
    let refusals = try records.countRefusals(AuditEvent.ofSignIns, at: user.username.key, since: windowAgo)
    if refusals >= Risk.manyFailures { signals.insert(.failures) }
    if let device, now.since(device.enrolledAt) < Risk.newDeviceAge { signals.insert(.newDevice) }
    if caller.identity.environment == .development { signals.insert(.development) }
    let risk = Risk(signals: signals)
    return risk.score >= threshold ? .risk(risk) : nil
  }

  /// Stores the network from which the user has completed a sign-in, if the policy uses networks.
  func remember(_ address: String, of user: User, _ binding: Binding) throws {
    guard policy.watchesNetworks, let network = NetworkPrefix(address) else { return }
    try records.saw(network: network.text, of: user.id, by: binding, at: now)
  }
}

extension Policy {
  /// Whether any policy depends on the network of a sign-in. Otherwise no network is stored.
  var watchesNetworks: Bool { bindsTrustToNetwork || stepUpScore != nil }
}

extension AuditEvent {
  /// The refusals that an attacker's sign-ins leave at an account.
  fileprivate static let ofSignIns: [AuditEvent] = [
    .signatureRefused, .codeRefused, .codeThrottled, .trustRefused, .recoveryRefused, .securityKeyRefused,
  ]
}
