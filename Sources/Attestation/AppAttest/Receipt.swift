public import ByteCoding
public import Cryptography

/// Apple's receipt for an attested key, parsed but not verified: signed data with a set of numbered fields.
///
/// Each attestation contains one (`ATTEST`). Apple's server exchanges it for newer ones (`RECEIPT`), which contain
/// the number of keys that a device has made.
public struct Receipt: Sendable, Hashable {
  /// The maximum accepted size in bytes. Real receipts have about 4 KB.
  public static let maximumSize = 16384

  /// The kind of a receipt.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The receipt that comes with an attestation.
    case attest = "ATTEST"
    /// A receipt that Apple's server issued in exchange for another one.
    case receipt = "RECEIPT"
  }

  /// The unchanged receipt, for storage and for the exchange with Apple's server.
  public let bytes: [UInt8]
  /// The kind of this receipt.
  public let kind: Kind
  /// The app that the receipt is for, as `TEAMID.bundle.identifier`.
  public let appID: String
  /// The leaf of the attestation.
  public let attestedCertificate: Certificate
  /// The attested key in X9.62 form, 65 bytes.
  public let publicKey: [UInt8]
  /// The client data hash of the attestation. In a receipt of kind `receipt` it is damaged by a text conversion and
  /// useless.
  public let clientDataHash: [UInt8]?
  /// The App Attest environment of the key.
  public let environment: AttestEnvironment
  /// The time at which Apple made the receipt.
  public let creationTime: Timestamp
  /// The time from which the receipt is not valid.
  public let expirationTime: Timestamp
  /// The approximate number of keys that the device attested in the last days; `nil` if Apple did not report it.
  public let riskMetric: String?
  /// From when on Apple exchanges this receipt for a newer one. Not a start of validity.
  public let renewableFrom: Timestamp?

  let signedData: SignedData

  /// Parses a receipt. Fields may have any order, and unknown fields are ignored.
  public init(_ bytes: [UInt8]) throws(ReceiptRejection) {
    guard bytes.count <= Self.maximumSize else { throw .tooLong(bytes.count, limit: Self.maximumSize) }
    do throws(CMSRejection) {
      signedData = try SignedData(bytes)
    } catch {
      throw .notSignedData(error)
    }
    let fields = try ReceiptFields(signedData.content)
    self.bytes = bytes
    // As bytes: nothing is verified yet, and a comparison of `String` normalizes.
    kind = try fields.require(.type) { value in Kind.allCases.first { $0.rawValue.utf8.elementsEqual(value) } }
    appID = try fields.require(.appID, read: ReceiptFields.text)
    attestedCertificate = try fields.require(.attestedKey) { try? Certificate(der: $0) }
    clientDataHash = try kind == .attest ? fields.require(.clientDataHash) { $0 } : fields[.clientDataHash]
    environment = try fields.require(.environment, read: Self.environment)
    creationTime = try fields.require(.creationTime, read: ReceiptFields.time)
    expirationTime = try fields.require(.expirationTime, read: ReceiptFields.time)
    riskMetric = try fields.ifPresent(.riskMetric, read: ReceiptFields.text)
    // Nothing is judged by it.
    renewableFrom = fields[.renewableFrom].flatMap(ReceiptFields.time)
    guard let publicKey = attestedCertificate.p256PublicKey else { throw .malformedField(.attestedKey) }
    self.publicKey = publicKey
  }

  private static func environment(_ value: [UInt8]) -> AttestEnvironment? {
    if value.elementsEqual("sandbox".utf8) { return .development }
    return value.elementsEqual("production".utf8) ? .production : nil
  }

  public static func == (first: Receipt, second: Receipt) -> Bool { first.bytes == second.bytes }
  public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// The fields that are read, by the number that marks them.
public enum ReceiptField: Int, Sendable, Hashable, CaseIterable {
  /// The app, as `TEAMID.bundle.identifier`.
  case appID = 2
  /// The leaf certificate of the attestation.
  case attestedKey = 3
  /// The client data hash of the attestation.
  case clientDataHash = 4
  /// A token of Apple's server. It is not checked.
  case token = 5
  /// The kind: `ATTEST` or `RECEIPT`.
  case type = 6
  /// The environment: `sandbox` or `production`.
  case environment = 7
  /// The time of creation (RFC 3339).
  case creationTime = 12
  /// The approximate number of keys that the device attested in the last days.
  case riskMetric = 17
  /// The time from which Apple exchanges the receipt for a newer one.
  case renewableFrom = 19
  /// The time of expiry (RFC 3339).
  case expirationTime = 21
}

/// The content of a receipt: SET OF SEQUENCE { type INTEGER, version INTEGER, value OCTET STRING }.
struct ReceiptFields {
  private var values: [ReceiptField: [UInt8]] = [:]

  init(_ content: [UInt8]) throws(ReceiptRejection) {
    for (type, value) in try Self.entries(of: content) {
      guard let field = ReceiptField(rawValue: type), field != .token, let value else { continue }
      guard values.updateValue(value, forKey: field) == nil else { throw .repeatedField(field) }
    }
  }

  subscript(field: ReceiptField) -> [UInt8]? { values[field] }

  func require<Value>(_ field: ReceiptField, read: ([UInt8]) -> Value?) throws(ReceiptRejection) -> Value {
    guard let value = try ifPresent(field, read: read) else { throw .missingField(field) }
    return value
  }

  func ifPresent<Value>(_ field: ReceiptField, read: ([UInt8]) -> Value?) throws(ReceiptRejection) -> Value? {
    guard let bytes = values[field] else { return nil }
    guard let value = read(bytes) else { throw .malformedField(field) }
    return value
  }

  /// Decodes UTF-8; returns `nil` for malformed bytes.
  static func text(_ value: [UInt8]) -> String? {
    let text = String(decoding: value, as: UTF8.self)
    return text.utf8.elementsEqual(value) ? text : nil
  }

  /// RFC 3339 with 0 to 9 fraction digits: Apple drops trailing zeros.
  static func time(_ value: [UInt8]) -> Timestamp? { text(value).flatMap { Timestamp(rfc3339: $0) } }

  /// The fields by their numbers; `nil` for the value of an unknown field, whatever it is.
  private static func entries(of content: [UInt8]) throws(ReceiptRejection) -> [(type: Int, value: [UInt8]?)] {
    do throws(ASN1Error) {
      // As for the message around them: a signature covers each byte, so that every encoding has one meaning.
      var file = ASN1Reader(content, rules: .ber)
      var set = try file.enter(.set)
      try file.end()
      var entries: [(Int, [UInt8]?)] = []
      while !set.isAtEnd {
        var entry = try set.enter(.sequence)
        let type = try entry.unsignedInteger()
        _ = try entry.unsignedInteger()  // the version of the field's type, always 1
        guard ReceiptField(rawValue: type) != nil else {
          entries.append((type, nil))
          continue
        }
        entries.append((type, Array(try entry.octetString())))
        try entry.end()
      }
      return entries
    } catch {
      throw .malformedFields(error)
    }
  }
}
