internal import CommandSupport
internal import AttestClient
internal import ByteCoding
internal import Cryptography
internal import Locking
internal import SimulatedDevice

/// A device whose steps can each be done wrongly.
final class ProbeDevice: Sendable {
  let key: P256PrivateKey
  let app: SimulatedApp
  private let lastCount = LockedValue<UInt32>(0)

  init(app: SimulatedApp) throws(CryptographyError) {
    key = try P256PrivateKey()
    self.app = app
  }

  /// As `generateKey()` returns it.
  var keyID: String { Base64.encode(SHA256.hash(key.publicKey.x963)) }

  /// The next value of the counter.
  func count() -> UInt32 {
    lastCount.withLock { count in
      count += 1
      return count
    }
  }

  static func clientDataHash(_ nonce: String) -> [UInt8] { SHA256.hash(Hex.decode(nonce) ?? []) }

  func attestation(
    over nonce: String, by authority: TestAuthority, app: SimulatedApp? = nil
  ) throws(Failure) -> [UInt8] {
    do throws(CryptographyError) {
      return try AttestationMint(authority: authority, app: app ?? self.app)
        .attestation(of: key, clientDataHash: Self.clientDataHash(nonce), at: .now())
    } catch {
      throw Failure(cryptography: error)
    }
  }

  func assertion(
    over nonce: String, count: UInt32? = nil, app: SimulatedApp? = nil
  ) throws(Failure) -> [UInt8] {
    do throws(CryptographyError) {
      return try AssertionMint(app: app ?? self.app)
        .assertion(by: key, clientDataHash: Self.clientDataHash(nonce), signCount: count ?? self.count())
    } catch {
      throw Failure(cryptography: error)
    }
  }

  /// The lines of credentials over `nonce`.
  func lines(over nonce: String, count: UInt32? = nil) throws(Failure) -> [String] {
    Self.lines(keyID: keyID, assertion: try assertion(over: nonce, count: count), nonce: nonce)
  }

  static func lines(keyID: String, assertion: [UInt8], nonce: String) -> [String] {
    [
      "\(AssertionHeaders.keyIDName): \(keyID)", "\(AssertionHeaders.dataName): \(Base64.encode(assertion))",
      "\(AssertionHeaders.nonceName): \(nonce)",
    ]
  }
}
