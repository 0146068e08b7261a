internal import ArgumentParser
internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import SimulatedDevice

/// The public key of a device, in the forms that other tools read.
struct PublicKeyForms: Sendable, Encodable {
  /// A form of a public key.
  enum Form: String, Sendable, CaseIterable, ExpressibleByArgument {
    case pem
    case x963
    case jwk
  }

  /// A JSON Web Key (RFC 7517) on P-256, without a private part.
  struct JWK: Sendable, Encodable {
    let kty = "EC"
    let crv = "P-256"
    /// The coordinates, base64url of 32 bytes each.
    let x: String
    let y: String
  }

  /// `SubjectPublicKeyInfo` as a block of PEM.
  let pem: String
  /// Base64 of 4, x and y: 65 bytes.
  let x963: String
  let jwk: JWK

  /// The public part of `key`.
  init(of key: SimulatedKey) throws(KeyStoreError) {
    do throws(CryptographyError) {
      let key = try P256PrivateKey(pkcs8PEM: key.privateKeyPEM).publicKey
      pem = try key.pem
      x963 = Base64.encode(key.x963)
      jwk = JWK(x: Base64URL.encode(key.x963[1..<33]), y: Base64URL.encode(key.x963[33...]))
    } catch {
      throw .malformed("the key \(key.keyID) has no private key on P-256")
    }
  }

  /// One form, with its line end.
  func text(_ form: Form) -> String {
    switch form {
    case .pem: pem
    case .x963: x963 + "\n"
    case .jwk: JSONText.encoding(jwk) + "\n"
    }
  }

  /// All forms, below the line of the key.
  var lines: [String] {
    let block = pem.split(separator: "\n")
    return ["  x9.63  \(x963)", "  jwk    \(JSONText.encoding(jwk))"]
      + zip(block.indices, block).map { ($0 == block.startIndex ? "  pem    " : "         ") + $1 }
  }
}

extension DeviceStore {
  /// The attested key `keyID` of the device in `report`. Without an identifier it is the key that was attested last, or
  /// the only one.
  func attestedKey(_ keyID: String?, of report: DeviceReport) throws(Failure) -> DeviceReport.Key {
    let name = report.device.name
    let keys = report.keys.filter(\.isAttested)
    if let keyID {
      guard let key = keys.first(where: { $0.keyId.hasSameBytes(as: keyID) }) else {
        throw Failure(
          .noInput, "the device \(name) has no attested key \(keyID.prefix(64))",
          hint: "`attest device show \(name)` lists its keys")
      }
      return key
    }
    let last: String?
    do throws(KeyStoreError) { last = try lastKey(name).load().keyID } catch { throw Failure(error) }
    if let key = keys.first(where: { $0.keyId == last }) { return key }
    guard let key = keys.first else {
      throw Failure(
        .noInput, "the device \(name) has no attested key",
        hint: "`attest attestation --nonce HEX --device \(name)` makes one without a network, "
          + "`attest register URL --device \(name)` at a gate")
    }
    guard keys.count == 1 else {
      throw Failure(
        .usage, "the device \(name) has \(keys.count) attested keys",
        hint: "--key names one, `attest device show \(name)` lists them")
    }
    return key
  }
}
