internal import CBOR

/// What `DCAppAttestService.generateAssertion` returns, read but not verified.
public struct Assertion: Sendable, Hashable {
  /// The longest that is taken; real ones have 140 to 210 bytes.
  public static let maximumSize = 4096

  /// ECDSA, DER.
  public let signature: [UInt8]
  /// What is signed, together with the client data hash; untouched.
  public let authenticatorData: [UInt8]
  /// What iOS 27 and later say about the app; `nil` before.
  public let extensions: AuthenticatorExtensions?

  let head: AuthenticatorDataHead

  /// How often the key has signed, this signature included.
  public var counter: SignCount { head.counter }

  /// Reads an assertion: a CBOR map of exactly `signature` and `authenticatorData`, and nothing behind it.
  public init(_ bytes: [UInt8]) throws(AssertionRejection) {
    let members = try Self.members(of: bytes)
    guard members.count == 2, case .bytes(let signature) = members["signature"],
      case .bytes(let authenticatorData) = members["authenticatorData"]
    else { throw .unexpectedMembers }
    self.signature = signature
    self.authenticatorData = authenticatorData
    do throws(AuthenticatorDataFault) {
      head = try AuthenticatorDataHead(authenticatorData[...])
      extensions = try .read(authenticatorData.dropFirst(AuthenticatorDataHead.size))
    } catch {
      throw .malformedAuthenticatorData(error)
    }
  }

  private static func members(of bytes: [UInt8]) throws(AssertionRejection) -> CBORMap {
    let value: CBORValue
    do throws(CBORError) {
      value = try CBORValue(decoding: bytes, limits: CBORLimits(bytes: maximumSize, depth: 2, items: 16))
    } catch {
      throw .notCBOR(error)
    }
    guard case .map(let members) = value else { throw .unexpectedMembers }
    return members
  }
}
