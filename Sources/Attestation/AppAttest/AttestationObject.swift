internal import CBOR
public import Cryptography

/// The result of `DCAppAttestService.attestKey`, parsed but not verified.
public struct AttestationObject: Sendable, Hashable {
  /// The maximum accepted size in bytes. Real attestations have about 5 KB.
  public static let maximumSize = 16384
  static let format = "apple-appattest"

  /// The object, untouched.
  public let bytes: [UInt8]
  /// The certificate of the attested key.
  public let leaf: Certificate
  /// The certificate that issued the leaf.
  public let intermediate: Certificate
  /// The bytes that the leaf's nonce covers, unchanged.
  public let authenticatorData: [UInt8]
  /// Apple's receipt for the key, parsed but not verified.
  public let receipt: Receipt
  /// The extensions that iOS 27 and later send about the app; `nil` before.
  public let extensions: AuthenticatorExtensions?

  let head: AuthenticatorDataHead
  let credential: AttestedCredential

  /// Parses an attestation object: a CBOR map with exactly the members `fmt`, `attStmt` (exactly `x5c`, with a leaf
  /// and an intermediate, and `receipt`) and `authData`, and no further bytes.
  public init(_ bytes: [UInt8]) throws(AttestationRejection) {
    let (statement, authenticatorData) = try Self.members(of: bytes)
    guard statement.count == 2, case .array(let chain) = statement["x5c"],
      case .bytes(let receipt) = statement["receipt"]
    else { throw .unexpectedMembers(of: "attStmt") }
    guard chain.count == 2 else { throw .unexpectedCertificateCount(chain.count) }
    self.bytes = bytes
    leaf = try Self.certificate(chain[0])
    intermediate = try Self.certificate(chain[1])
    self.authenticatorData = authenticatorData
    (head, credential, extensions) = try Self.parts(of: authenticatorData[...])
    do throws(ReceiptRejection) {
      self.receipt = try Receipt(receipt)
    } catch {
      throw .receipt(error)
    }
  }

  private static func members(
    of bytes: [UInt8]
  ) throws(AttestationRejection) -> (statement: CBORMap, authenticatorData: [UInt8]) {
    let value: CBORValue
    do throws(CBORError) {
      value = try CBORValue(decoding: bytes, limits: CBORLimits(bytes: maximumSize, depth: 4, items: 64))
    } catch {
      throw .notCBOR(error)
    }
    guard case .map(let members) = value, members.count == 3, case .text(let format) = members["fmt"],
      case .map(let statement) = members["attStmt"], case .bytes(let authenticatorData) = members["authData"]
    else { throw .unexpectedMembers(of: "attestation object") }
    guard format.utf8.elementsEqual(Self.format.utf8) else { throw .unexpectedFormat(format) }
    return (statement, authenticatorData)
  }

  private static func certificate(_ value: CBORValue) throws(AttestationRejection) -> Certificate {
    guard case .bytes(let der) = value else { throw .unexpectedMembers(of: "x5c") }
    do throws(CryptographyError) {
      return try Certificate(der: der)
    } catch {
      throw .malformedCertificate(error)
    }
  }

  private static func parts(
    of bytes: ArraySlice<UInt8>
  ) throws(AttestationRejection) -> (AuthenticatorDataHead, AttestedCredential, AuthenticatorExtensions?) {
    do throws(AuthenticatorDataRejection) {
      let head = try AuthenticatorDataHead(bytes)
      let rest = bytes.dropFirst(AuthenticatorDataHead.size)
      let credential = try AttestedCredential(rest)
      return (head, credential, try .read(rest.dropFirst(AttestedCredential.size)))
    } catch {
      throw .malformedAuthenticatorData(error)
    }
  }
}
