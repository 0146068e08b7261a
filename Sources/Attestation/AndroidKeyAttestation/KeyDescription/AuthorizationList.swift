internal import Cryptography

/// What one part of the device, its hardware or its system, says about a key.
public struct AuthorizationList: Sendable, Hashable {
  /// The value of one tag.
  public enum Value: Sendable, Hashable {
    /// The tag is present and has no value.
    case flag
    /// A whole number.
    case number(UInt64)
    /// Whole numbers, in the order of the certificate.
    case numbers([UInt64])
    /// A byte string.
    case bytes([UInt8])
    /// How the device was started.
    case rootOfTrust(RootOfTrust)
    /// The app that asked for the attestation.
    case applicationID(AttestationApplicationID)
  }

  /// A tag of another schema than the known ones, or one that no rule reads in this list and whose value has another
  /// form than the schema's, with the bytes of its value.
  public struct Unknown: Sendable, Hashable {
    /// The number of the tag.
    public let tag: Int
    /// The encoded value, which was not looked at.
    public let value: [UInt8]
  }

  /// The values of the known tags.
  public private(set) var values: [AuthorizationTag: Value] = [:]
  /// The other tags, in the order of the certificate.
  public private(set) var unknown: [Unknown] = []

  /// The value of `tag`; `nil` if it is absent.
  public subscript(tag: AuthorizationTag) -> Value? { values[tag] }

  /// The number of `tag`; `nil` if it is absent.
  public func number(_ tag: AuthorizationTag) -> UInt64? {
    if case .number(let number) = values[tag] { number } else { nil }
  }

  /// The numbers of `tag`; empty if it is absent.
  public func numbers(_ tag: AuthorizationTag) -> [UInt64] {
    if case .numbers(let numbers) = values[tag] { numbers } else { [] }
  }

  /// How the device was started.
  public var rootOfTrust: RootOfTrust? {
    if case .rootOfTrust(let root) = values[.rootOfTrust] { root } else { nil }
  }

  /// The app that asked for the attestation.
  public var applicationID: AttestationApplicationID? {
    if case .applicationID(let application) = values[.attestationApplicationId] { application } else { nil }
  }

  /// Reads the elements of the list up to its end. Each tag may occur once. DER requires no order in a SEQUENCE whose
  /// elements are optional except that of the schema, and genuine devices have another one.
  ///
  /// - Parameter judged: The tags whose values rules read in this list.
  init(_ list: inout ASN1Reader, judging judged: Set<AuthorizationTag>) throws(ASN1Error) {
    var numbers: Set<Int> = []
    while !list.isAtEnd {
      let element = try list.nextExplicit()
      guard numbers.insert(element.number).inserted else {
        throw .malformed("the tag \(element.number) occurs twice in an authorization list")
      }
      if let tag = AuthorizationTag(rawValue: element.number) {
        do throws(ASN1Error) {
          values[tag] = try Self.value(of: tag, whole: element.content)
          continue
        } catch {
          // Some devices write what the schema forbids, where it counts for nothing.
          guard !judged.contains(tag) else { throw error }
        }
      }
      unknown.append(Unknown(tag: element.number, value: Array(element.bytes)))
    }
  }

  private static func value(of tag: AuthorizationTag, whole content: ASN1Reader) throws(ASN1Error) -> Value {
    var content = content
    let value = try value(of: tag, in: &content)
    try content.end()
    return value
  }

  private static func value(of tag: AuthorizationTag, in content: inout ASN1Reader) throws(ASN1Error) -> Value {
    switch tag.form {
    case .flag:
      try content.null()
      return .flag
    case .number: return .number(try content.unsignedInteger64())
    case .numbers: return .numbers(try numbers(in: &content))
    case .bytes: return .bytes(Array(try content.octetString()))
    case .rootOfTrust: return .rootOfTrust(try RootOfTrust(&content))
    case .applicationID: return .applicationID(try AttestationApplicationID(try content.octetString()))
    }
  }

  /// A SET OF INTEGER. Genuine devices do not sort it, as DER requires.
  private static func numbers(in content: inout ASN1Reader) throws(ASN1Error) -> [UInt64] {
    var set = try content.enter(.set)
    var numbers: [UInt64] = []
    while !set.isAtEnd { numbers.append(try set.unsignedInteger64()) }
    return numbers
  }
}
