internal import CBOR

/// The result of `DCAppAttestService.generateAssertion`, parsed but not verified.
public struct Assertion: Sendable, Hashable {
  /// The maximum accepted size in bytes. Real assertions have 140 to 210.
  public static let maximumSize = 4096

  /// ECDSA, DER.
  public let signature: [UInt8]
  /// The signed bytes, unchanged. The client data hash is signed with them.
  public let authenticatorData: [UInt8]
  /// The extensions that iOS 27 and later send about the app; `nil` before.
  public let extensions: AuthenticatorExtensions?

  let head: AuthenticatorDataHead

  /// How often the key has signed, this signature included.
  public var counter: SignCount { head.counter }

  /// Parses an assertion: a CBOR map with exactly the members `signature` and `authenticatorData`, and no further
  /// bytes.
  public init(_ bytes: [UInt8]) throws(AssertionRejection) {
    let members = try Self.members(of: bytes)
    guard members.count == 2, case .bytes(let signature) = members["signature"],
      case .bytes(let authenticatorData) = members["authenticatorData"]
    else { throw .unexpectedMembers }
    self.signature = signature
    self.authenticatorData = authenticatorData
    do throws(AuthenticatorDataRejection) {
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
