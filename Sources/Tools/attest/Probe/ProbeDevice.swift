internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import Locking
internal import SimulatedDevice

/// A device whose steps can each be done wrongly.
protocol ProbeDevice: Sendable {
  var key: P256PrivateKey { get }

  /// A valid proof of the key over `nonce`.
  func proof(over nonce: String) throws(Failure) -> [UInt8]
}

extension ProbeDevice {
  /// The name of the key, 32 bytes.
  var keyIDBytes: [UInt8] { SHA256.hash(key.publicKey.x963) }

  /// As the key services return it.
  var keyID: String { Base64.encode(keyIDBytes) }

  /// The lines of credentials over `nonce`.
  func lines(over nonce: String) throws(Failure) -> [String] { lines(try proof(over: nonce), nonce: nonce) }

  /// The lines of credentials with any proof. `text` encodes key id and proof.
  func lines(
    _ proof: [UInt8], nonce: String, _ text: ([UInt8]) -> String = { Base64.encode($0) }
  ) -> [String] {
    [
      "\(AssertionHeaders.keyIDName): \(text(keyIDBytes))", "\(AssertionHeaders.dataName): \(text(proof))",
      "\(AssertionHeaders.nonceName): \(nonce)",
    ]
  }
}

/// A device with App Attest.
final class AppAttestProbeDevice: ProbeDevice {
  let key: P256PrivateKey
  let app: SimulatedApp
  private let lastCount: LockedValue<UInt32>

  init(app: SimulatedApp, countingFrom count: UInt32 = 0) throws(CryptographyError) {
    key = try P256PrivateKey()
    self.app = app
    lastCount = LockedValue(count)
  }

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

  func proof(over nonce: String) throws(Failure) -> [UInt8] { try assertion(over: nonce) }

  func lines(over nonce: String, count: UInt32) throws(Failure) -> [String] {
    lines(try assertion(over: nonce, count: count), nonce: nonce)
  }
}

/// A device with Android.
struct AndroidProbeDevice: ProbeDevice {
  let key: P256PrivateKey
  let profile: AndroidProfile
  let authority: AndroidAuthority

  init(authority: AndroidAuthority, profile: AndroidProfile) throws(CryptographyError) {
    key = try P256PrivateKey()
    self.profile = profile
    self.authority = authority
  }

  func proof(over nonce: String) throws(Failure) -> [UInt8] {
    do throws(CryptographyError) {
      return try AndroidProofMint.proof(by: key, nonce: Hex.decode(nonce) ?? [])
    } catch {
      throw Failure(cryptography: error)
    }
  }

  /// The signature of the key over any message, in DER.
  func signature(over message: [UInt8]) throws(Failure) -> [UInt8] {
    do throws(CryptographyError) { return try key.signature(for: message) } catch { throw Failure(cryptography: error) }
  }

  /// The chain over `nonce`, of which `change` may change each part.
  func chain(
    over nonce: String, as profile: AndroidProfile? = nil, by authority: AndroidAuthority? = nil,
    _ change: (inout AndroidMint) throws(CryptographyError) -> Void = { _ in }
  ) throws(Failure) -> [[UInt8]] {
    do throws(CryptographyError) {
      var mint = try AndroidAttestationMint(
        authority: authority ?? self.authority, profile: profile ?? self.profile
      ).mint(of: key, challenge: Hex.decode(nonce) ?? [], at: .now())
      try change(&mint)
      return try mint.chain()
    } catch {
      throw Failure(cryptography: error)
    }
  }
}
