public import CBOR

/// The rules of an assertion, in the order in which they are checked. The raw values are stable.
public enum AssertionStep: String, Sendable, Hashable, CaseIterable {
  /// The object has exactly the structure that Apple describes.
  case format
  /// The bytes after the fixed part of the authenticator data are empty or one map of extensions.
  case extensions
  /// The key signed this authenticator data for this client data hash.
  case signature
  /// The authenticator data is for the app to which the key is bound.
  case rpID = "rp_id"
  /// The key has signed more often than when it was last seen.
  case counter
}

/// Why an assertion is not accepted: the rule that it breaks, and the values that show it.
public enum AssertionRejection: Error, Sendable, Hashable {
  /// The assertion is not the CBOR that the decoder accepts.
  case notCBOR(CBORError)
  /// The object does not have exactly the members `signature` and `authenticatorData`, both byte strings.
  case unexpectedMembers
  /// The authenticator data cannot be parsed.
  case malformedAuthenticatorData(AuthenticatorDataRejection)
  /// Not a signature by this key, or not one of this message.
  case invalidSignature
  /// The assertion is for another app; `found` is its RP ID hash, 32 bytes.
  case rpIDMismatch(expected: AppID, found: [UInt8])
  /// The counter is not greater than the last one of the key.
  case counterNotGreater(found: SignCount, last: SignCount)

  /// The rule that is broken.
  public var brokenStep: AssertionStep {
    switch self {
    case .notCBOR, .unexpectedMembers: .format
    case .malformedAuthenticatorData(let fault): fault.isAboutExtensions ? .extensions : .format
    case .invalidSignature: .signature
    case .rpIDMismatch: .rpID
    case .counterNotGreater: .counter
    }
  }

  /// The word for the broken rule in logs.
  public var step: String { brokenStep.rawValue }
}
