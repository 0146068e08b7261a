internal import ByteCoding

/// What a device shows to be spared the second factor.
struct TrustProof: Sendable {
  let tokenHash: [UInt8]
  let binding: Binding

  init(token: String, binding: Binding, in vault: Vault) {
    tokenHash = vault.hash(token, as: "trust")
    self.binding = binding
  }
}

extension FactorRecords where Self: SecurityKeyRecords & TrustRecords & AuditRecords {
  /// How far a first factor brings `user`: to the end if there is no second and need not be one, or if the device is
  /// trusted to do without.
  func scope(
    after proof: TrustProof?, for user: User, _ policy: Policy, by caller: Caller, at now: Timestamp
  ) throws -> Session.Scope {
    guard try secondFactorSince(of: user.id) != nil else { return policy.blocks(user, at: now) ? .setup : .full }
    guard let proof else { return .pending }
    guard proof.binding != .debugBuild,
      var device = try trustedDevices(of: user.id, at: now).first(where: {
        $0.binding == proof.binding && constantTimeEqual($0.tokenHash, proof.tokenHash)
      })
    else {
      try note(.trustRefused, by: caller, account: user.username.key, at: now)
      return .pending
    }
    device.lastUsedAt = now
    try update(device)
    try note(.trustUsed, by: caller, account: user.username.key, ["trusted=\(device.id)"], at: now)
    return .full
  }
}
