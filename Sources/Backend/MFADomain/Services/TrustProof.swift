internal import ByteCoding

/// The trust token that a device presents to skip the second factor.
struct TrustProof: Sendable {
  let tokenHash: [UInt8]
  let binding: Binding

  init(token: String, binding: Binding, in vault: Vault) {
    tokenHash = vault.hash(token, as: "trust")
    self.binding = binding
  }
}

extension UnitOfWork where Initiator == Caller {
  /// The scope that a first factor gives `user`: full if no second factor is set up and none is required, or if the
  /// device is trusted and no policy asks for the factor again.
  ///
  /// - Parameter device: the device that signs in.
  func scope(after proof: TrustProof?, for user: User, on device: Device?) throws -> LoginSession.Scope {
    let scope = try scopeOfProof(proof, for: user, on: device)
    if scope == .full { try remember(caller.identity.clientAddress, of: user, caller.identity.binding) }
    return scope
  }

  /// The scope of a session that has proved nothing but a first factor which opens nothing alone: the second factor is
  /// missing, or must be set up.
  func scopeBeforeSecondFactor(of user: User) throws -> LoginSession.Scope {
    try records.secondFactorSince(of: user.id) == nil ? .setup : .pending
  }

  private func scopeOfProof(_ proof: TrustProof?, for user: User, on device: Device?) throws -> LoginSession.Scope {
    let least = try scopeBeforeSecondFactor(of: user)
    if least == .setup { return policy.blocks(user, at: now) ? .setup : .full }
    guard let proof else { return least }
    guard proof.binding != .debugBuild,
      var trusted = try records.trustedDevices(of: user.id, at: now).first(where: {
        $0.binding == proof.binding && constantTimeEqual($0.tokenHash, proof.tokenHash)
      })
    else {
      try note(.trustRefused, of: user)
      return .pending
    }
    if let stepUp = try stepUp(for: user, trusted: trusted, device: device) {
      try note(.trustSteppedUp, of: user, ["trusted=\(trusted.id)"] + stepUp.detail)
      return .pending
    }
    trusted.lastUsedAt = now
    try records.update(trusted)
    try note(.trustUsed, of: user, ["trusted=\(trusted.id)"])
    return .full
  }

  /// Trusts the caller's app instance, which keeps `token`.
  func trust(_ description: SecondFactor.Description, _ token: String, for user: User) throws {
    // Each app instance has one entry in the list, so removing that entry ends its trust.
    let (binding, address) = (caller.identity.binding, caller.identity.clientAddress)
    try records.removeTrustedDevices(of: user.id, boundTo: binding)
    let fingerprint = vault.hash(description.userAgent, address, as: "fingerprint")
    let id = try records.insert(
      TrustedDevice(
        id: 0, userID: user.id, tokenHash: vault.hash(token, as: "trust"), binding: binding,
        name: description.name, fingerprint: Hex.encode(fingerprint.prefix(16)), address: address, createdAt: now,
        lastUsedAt: now, expiresAt: now.advanced(by: TrustedDevice.lifetime)))
    try note(.deviceTrusted, of: user, ["trusted=\(id)"])
  }
}
