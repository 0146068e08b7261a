internal import AndroidKeyAttestation
internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Cryptography

/// Writes the members of a JSON object. Names are constants that need no escapes.
struct ClaimWriter {
  private var bytes: [UInt8]

  /// - Parameter prefix: The beginning of an object with at least one member.
  init(prefix: [UInt8]) {
    bytes = []
    bytes.reserveCapacity(512)
    bytes += prefix
  }

  mutating func text(_ name: StaticString, _ value: String) { JSONText.appendMember(name, value, to: &bytes) }
  mutating func number(_ name: StaticString, _ value: Int64) { JSONText.appendMember(name, value, to: &bytes) }

  /// Writes an object with one member.
  mutating func object(_ name: StaticString, _ member: String, _ value: String) {
    bytes.append(UInt8(ascii: ","))
    JSONText.append(name, after: "", to: &bytes)
    bytes += ":{\"".utf8
    bytes += member.utf8
    bytes += "\":".utf8
    JSONText.append(value, to: &bytes)
    bytes.append(UInt8(ascii: "}"))
  }

  /// Writes a member whose name may need escapes.
  mutating func text(named name: String, _ value: String) {
    bytes.append(UInt8(ascii: ","))
    JSONText.append(name, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
    JSONText.append(value, to: &bytes)
  }

  /// Writes `cnf` with a key (RFC 7800 section 3.2).
  mutating func confirmation(_ key: JSONWebKey) {
    bytes += #","cnf":{"jwk":{"kty":"EC","crv":"P-256","x":"\#(key.x)","y":"\#(key.y)"}}"#.utf8
  }

  consuming func ended() -> [UInt8] {
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }
}

extension ClaimWriter {
  /// Writes what the gate knows about `device`, apart from its subject.
  mutating func describe(_ device: DevicePrincipal) {
    text("app", device.app.text)
    text("env", device.environment.rawValue)
    switch device.evidence {
    case .appAttest(let counter, let category):
      number("counter", Int64(counter.value))
      if let category { text("category", category.name) }
    case .android(let key):
      text("security_level", key.securityLevel.word)
      text("boot_state", key.bootState.word)
      if let patchLevel = key.patchLevel { text("patch_level", patchLevel.description) }
      text("provisioning", key.provisioning.rawValue)
    }
    if let risk = device.risk {
      number("risk", Int64(risk.metric))
      number("risk_at", risk.at.seconds)
    }
  }
}

extension IdentityKey {
  /// Signs `claims` as a JWT (RFC 7519) with ES256.
  ///
  /// - Parameter type: The `typ` of the header.
  /// - Throws: `.failed` if OpenSSL cannot sign.
  func token(ofType type: String, _ claims: [UInt8]) throws(StoreError) -> String {
    var header: [UInt8] = []
    header.append(contentsOf: #"{"alg":"ES256""#.utf8)
    JSONText.appendMember("typ", type, to: &header)
    JSONText.appendMember("kid", kid, to: &header)
    header.append(UInt8(ascii: "}"))
    // Each part has four digits for three bytes. The signature has 64 bytes.
    var text: [UInt8] = []
    text.reserveCapacity((header.count + claims.count) / 3 * 4 + 100)
    Base64URL.append(header, to: &text)
    // base64url has no `.`, so the signed text is unambiguous.
    text.append(UInt8(ascii: "."))
    Base64URL.append(claims, to: &text)
    do throws(CryptographyError) {
      let signature = try privateKey.es256Signature(for: text)
      text.append(UInt8(ascii: "."))
      Base64URL.append(signature, to: &text)
    } catch {
      throw .failed(reason: "\(error)")
    }
    return String(decoding: text, as: UTF8.self)
  }
}
