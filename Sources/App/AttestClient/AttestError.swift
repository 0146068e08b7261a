public import ByteCoding

/// Why a registration or a connection failed.
///
/// `missingNonce`, `registrationFailed`, `assertionFailed` and `serviceUnavailable` have the meanings of the
/// integration guide. A refusal contains the gate's code and text.
public enum AttestError: Error, Sendable, Hashable {
  /// The gate's challenge contains no usable nonce.
  case missingNonce
  /// The gate gave no challenge.
  case challengeFailed(GateRefusal)
  /// The gate refused the registration.
  case registrationFailed(GateRefusal)
  /// The gate refused the connection, or the server behind it did: see `GateRefusal.isFromUpstream`.
  case assertionFailed(GateRefusal)
  /// No key is registered.
  case serviceUnavailable
  /// An operator revoked this device's key. No new key is made: that would undo the revocation.
  case keyRevoked(GateRefusal)
  /// The key was refused, and the one before it less than an hour ago: making more keys would not help.
  case renewedTooRecently(until: Timestamp)
  /// The address is not an `https` or `wss` URL without user, query and fragment.
  case unusableAddress(String)
  /// App Attest failed on the device.
  case keyService(KeyServiceError)
  /// There was no complete answer from the gate.
  case transport(TransportError)
  /// The key identifier cannot be read or written.
  case store(KeyStoreError)
  /// The calling task was cancelled.
  case cancelled
}

extension AttestError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .missingNonce: "the gate's challenge has no nonce"
    case .challengeFailed(let refusal): "no challenge: \(refusal)"
    case .registrationFailed(let refusal): "registration refused: \(refusal)"
    case .assertionFailed(let refusal): refusal.sentence
    case .serviceUnavailable: "this device is not registered"
    case .keyRevoked(let refusal): "this device's key was revoked: \(refusal)"
    case .renewedTooRecently(let until):
      // The next whole second, since the fraction is not for people.
      "the key was refused again; a new one may be made after \(until.advanced(by: .milliseconds(999)).wholeSecond)"
    case .unusableAddress(let address): "not the address of a gate: \(address)"
    case .keyService(let error): "\(error)"
    case .transport(let error): error.description(of: "the gate")
    case .store(let error): "\(error)"
    case .cancelled: "cancelled"
    }
  }
}

/// Why a WebSocket did not open. The code that opens it throws this to the session.
public enum UpgradeError: Error, Sendable, Hashable {
  /// There was an answer, and it was not 101.
  case refused(GateRefusal)
  /// There was no complete answer.
  case transport(TransportError)
}
