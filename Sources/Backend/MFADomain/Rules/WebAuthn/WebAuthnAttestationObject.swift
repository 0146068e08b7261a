internal import CBOR

/// The attestation of an authenticator for a new credential (Web Authentication Level 3, section 6.5.4).
struct WebAuthnAttestationObject: Sendable, Hashable {
  private let statement: Statement
  let authenticatorData: WebAuthnAuthenticatorData

  private enum Statement: Sendable, Hashable {
    /// There is no statement, or one that can be verified only with roots of manufacturers.
    case untrusted
    /// Signed by the credential's own key (section 8.2, self attestation).
    case selfSigned(algorithm: CBORValue, signature: [UInt8])
  }

  init(_ bytes: [UInt8]) throws(WebAuthnRejection) {
    guard case .map(let map)? = try? CBORValue(decoding: bytes), map.count == 3, case .text(let format)? = map["fmt"],
      case .map(let statement)? = map["attStmt"], case .bytes(let data)? = map["authData"]
    else { throw .attestation }
    self.statement = try Self.statement(statement, format: format)
    authenticatorData = try WebAuthnAuthenticatorData(data)
  }

  /// Attestation is not requested, and there are no roots to verify one against. An unknown chain of certificates
  /// proves nothing, so it is parsed and not verified, as are the formats that always have one.
  private static func statement(_ map: CBORMap, format: String) throws(WebAuthnRejection) -> Statement {
    switch format {
    case "none":
      guard map.count == 0 else { throw .attestation }
      return .untrusted
    case "packed":
      guard let algorithm = map["alg"], algorithm.isInteger, case .bytes(let signature)? = map["sig"] else {
        throw .attestation
      }
      guard let chain = map["x5c"] else {
        guard map.count == 2 else { throw .attestation }
        return .selfSigned(algorithm: algorithm, signature: signature)
      }
      guard map.count == 3, case .array(let certificates) = chain, !certificates.isEmpty,
        certificates.allSatisfy(\.isBytes)
      else { throw .attestation }
      return .untrusted
    case "tpm", "android-key", "android-safetynet", "fido-u2f", "apple", "compound":
      return .untrusted
    default: throw .attestation
    }
  }

  /// Checks the part that needs no trust anchor: a signature by the credential's own key.
  func check(_ credential: WebAuthnAuthenticatorData.WebAuthnAttestedCredential, clientDataHash: [UInt8])
    throws(WebAuthnRejection)
  {
    guard case .selfSigned(let algorithm, let signature) = statement else { return }
    let key = credential.publicKey
    guard algorithm == CBORValue(integerLiteral: Int64(key.algorithm.rawValue)),
      key.verifies(signature, of: authenticatorData.bytes + clientDataHash)
    else { throw .attestation }
  }
}

extension CBORValue {
  fileprivate var isBytes: Bool { if case .bytes = self { true } else { false } }
  fileprivate var isInteger: Bool {
    switch self {
    case .unsigned, .negative: true
    default: false
    }
  }
}
