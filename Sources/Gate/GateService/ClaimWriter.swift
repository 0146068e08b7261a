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
  }
}

extension IdentityKey {
  /// Signs `claims` as a JWT (RFC 7519) with ES256.
  ///
  /// - Parameter type: The `typ` of the header, which needs no escapes.
  /// - Throws: `.failed` if OpenSSL cannot sign.
  func token(ofType type: String, _ claims: [UInt8]) throws(StoreError) -> String {
    let header = Base64URL.encode(Array(#"{"alg":"ES256","typ":"\#(type)","kid":"\#(kid)"}"#.utf8))
    // base64url has no `.`, so the signed text is unambiguous.
    let text = header + "." + Base64URL.encode(claims)
    do throws(CryptographyError) {
      return text + "." + Base64URL.encode(try privateKey.es256Signature(for: Array(text.utf8)))
    } catch {
      throw .failed(reason: "\(error)")
    }
  }
}
