public import ByteCoding

/// Seals every sealed value again, under a new data key.
public struct Resealing: Sendable {
  private let store: any Store
  private let keys: KeyEncryptionKeys
  private let entropy: Entropy
  private let clock: WallClock

  public init(
    _ store: any Store, _ keys: KeyEncryptionKeys, _ entropy: Entropy = .system, clock: WallClock = .system
  ) {
    self.store = store
    self.keys = keys
    self.entropy = entropy
    self.clock = clock
  }

  /// Makes a data key, seals every number, address and shared secret under it, and returns their number. It makes a new
  /// key of the history as well; earlier entries keep their key.
  ///
  /// All of it is one transaction. A server that runs meanwhile does not have the key. It must be restarted before it
  /// can read the sealed values.
  public func run() async throws -> Int {
    // Makes missing data keys.
    _ = try await Vault.open(in: store, with: keys, entropy: entropy)
    let now = clock.now()
    let count = try await store.write { [keys, entropy] records in
      _ = try records.makeDataKey(.fields, with: keys, entropy: entropy)
      _ = try records.makeDataKey(.history, with: keys, entropy: entropy)
      _ = try records.beginHistory(with: keys, at: now)
      let vault = try Vault(keys: records.dataKeys().map { ($0, try keys.unwrap($0)) }, entropy: entropy)
      var (count, last) = (0, "")
      while true {
        let users = try records.users(after: last, atMost: 500)
        for (_, user) in users { count += try Self.reseal(user, in: records, vault) }
        guard let key = users.last?.key else { break }
        last = key
      }
      return try count + Self.resealTokens(in: records, vault)
    }
    // This process uses the new keys from here on.
    _ = try await Vault.open(in: store, with: keys, entropy: entropy)
    return count
  }

  private static func resealTokens(in records: any Records, _ vault: Vault) throws -> Int {
    var (count, last) = (0, "")
    while true {
      let tokens = try records.tokens(after: last, atMost: 500)
      for var token in tokens {
        token.secret = try vault.reseal(token.secret, for: OATHToken.place(token.id))
        try records.update(token)
      }
      count += tokens.count
      guard let serial = tokens.last?.serial else { return count }
      last = serial.text
    }
  }

  private static func reseal(_ user: User, in records: any Records, _ vault: Vault) throws -> Int {
    var count = 0
    for var device in try records.devices(of: user.id) {
      guard let number = device.phoneNumber else { continue }
      device.phoneNumber = try vault.reseal(number, for: Enrolment.phonePlace(device.id))
      try records.save(device)
      count += 1
    }
    for address in try records.pushAddresses(of: user.id) {
      try records.save(address.with(vault.reseal(address.token, for: PushAddresses.place(address.deviceID))))
      count += 1
    }
    if let email = try records.email(of: user.id) {
      try records.saveEmail(vault.reseal(email, for: EmailCodes.place(user.id)), of: user.id)
      count += 1
    }
    if var factor = try records.totp(of: user.id) {
      factor.secret = try vault.reseal(factor.secret, for: Authenticator.place(user.id))
      try records.save(factor)
      count += 1
    }
    for var offer in try records.appOffers(of: user.id) {
      offer.secret = try vault.reseal(offer.secret, for: OATHToken.place(offer.id))
      try records.save(offer)
      count += 1
    }
    return count
  }
}

extension Vault {
  /// Returns the same value, sealed under the newest key.
  func reseal(_ sealed: Sealed, for place: String) throws -> Sealed { try seal(open(sealed, for: place), for: place) }
}
