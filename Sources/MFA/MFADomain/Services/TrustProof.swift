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

extension FactorRecords where Self: SecurityKeyRecords & TrustRecords & AuditRecords & NetworkRecords {
  /// How far a first factor brings `user`: to the end if there is no second and need not be one, or if the device is
  /// trusted to do without and nothing asks for the factor all the same.
  ///
  /// - Parameter device: the one that signs in.
  func scope(
    after proof: TrustProof?, for user: User, on device: Device? = nil, _ policy: Policy, by caller: Caller,
    at now: Timestamp
  ) throws -> LoginSession.Scope {
    let scope = try scopeOfProof(proof, for: user, on: device, policy, by: caller, at: now)
    if scope == .full {
      try remember(caller.identity.clientAddress, of: user, caller.identity.binding, policy, at: now)
    }
    return scope
  }

  private func scopeOfProof(
    _ proof: TrustProof?, for user: User, on device: Device?, _ policy: Policy, by caller: Caller, at now: Timestamp
  ) throws -> LoginSession.Scope {
    guard try secondFactorSince(of: user.id) != nil else { return policy.blocks(user, at: now) ? .setup : .full }
    guard let proof else { return .pending }
    guard proof.binding != .debugBuild,
      var trusted = try trustedDevices(of: user.id, at: now).first(where: {
        $0.binding == proof.binding && constantTimeEqual($0.tokenHash, proof.tokenHash)
      })
    else {
      try note(.trustRefused, by: caller, account: user.username.key, at: now)
      return .pending
    }
    if let stepUp = try stepUp(for: user, trusted: trusted, device: device, policy, by: caller, at: now) {
      try note(
        .trustSteppedUp, by: caller, account: user.username.key, ["trusted=\(trusted.id)"] + stepUp.detail, at: now)
      return .pending
    }
    trusted.lastUsedAt = now
    try update(trusted)
    try note(.trustUsed, by: caller, account: user.username.key, ["trusted=\(trusted.id)"], at: now)
    return .full
  }
}
