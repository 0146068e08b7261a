internal import AndroidKeyAttestation
internal import ByteCoding
internal import Cryptography

/// What bytes contain that a device, a client or the gate sent, as a tree. Nothing is verified.
///
/// Pure: it reads no clock, and the result of the same bytes is the same. Work and result are bounded by
/// `maximumSize`, 10,000 parts and 64 levels; where a limit is reached, the tree says so at its place.
public struct Inspection: Sendable, Hashable {
  /// The most bytes that are looked at.
  public static let maximumSize = 1 << 20

  /// What the bytes are, by their structure.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// An attestation object of App Attest.
    case attestation
    /// An assertion of App Attest.
    case assertion
    /// A receipt, or other signed data.
    case receipt
    /// One or more certificates, as an Android device sends them.
    case certificates
    /// The body of `POST /attest/register`.
    case registration
    /// Header fields with a proof or a token.
    case headers
    /// The JWT that the gate sends to an upstream.
    case identity
    /// An access token (RFC 9068).
    case token
    /// A DPoP proof (RFC 9449).
    case proof = "dpop_proof"
    /// Another JWT.
    case jwt
    /// An ECDSA signature in DER, such as the proof of an Android device.
    case signature
    /// Other CBOR.
    case cbor
    /// Other DER or BER.
    case der

    /// With its article, for people.
    public var text: String {
      switch self {
      case .attestation: "an attestation object of App Attest"
      case .assertion: "an assertion of App Attest"
      case .receipt: "a receipt"
      case .certificates: "certificates"
      case .registration: "the body of a registration"
      case .headers: "header fields"
      case .identity: "an identity JWT of the gate"
      case .token: "an access token"
      case .proof: "a DPoP proof"
      case .jwt: "a JWT"
      case .signature: "an ECDSA signature"
      case .cbor: "CBOR"
      case .der: "DER"
      }
    }
  }

  /// A place where an encoding is broken.
  public struct Fault: Sendable, Hashable {
    /// The offset, as the tree has it.
    public let offset: Int
    /// The name of the part.
    public let part: String
    /// The rule that it breaks.
    public let reason: String

    /// Creates a fault.
    public init(offset: Int, part: String, reason: String) {
      (self.offset, self.part, self.reason) = (offset, part, reason)
    }
  }

  /// What the bytes are.
  public let kind: Kind
  /// How many bytes the decoded input has.
  public let size: Int
  /// Whether the input was base64, which was decoded.
  public let isArmored: Bool
  /// The parts, from front to back.
  public let parts: [InspectedNode]

  /// The places where the encoding is broken, from front to back.
  public var faults: [Fault] {
    parts.flatMap(\.flattened).compactMap { _, node in
      node.fault.map { Fault(offset: node.offset, part: node.name, reason: $0) }
    }
  }

  /// Recognizes and reads `content`: an object in binary or in base64, PEM or a JSON array of certificates, the JSON of
  /// a registration or of headers, header lines, or a JWT.
  ///
  /// - Throws: `.tooLong`, `.empty`, `.privateKey`, or `.unrecognized` with the place of the first byte that fits
  ///   nothing. Content that is recognized and broken does not throw; `faults` has it.
  public init(_ content: [UInt8]) throws(InspectionError) {
    guard content.count <= Self.maximumSize else { throw .tooLong }
    guard let first = content.first(where: { !JSONScanner.isSpace($0) }) else { throw .empty }
    var inspector = Inspector()
    if let text = PrintableText(content) {
      guard !text.hasPrivateKey else { throw .privateKey }
      if let found = try inspector.text(text, beginningWith: first) {
        (kind, parts) = found
        (size, isArmored) = (content.count, false)
        return
      }
      let bytes = try text.base64()
      (kind, parts) = try inspector.binary(bytes)
      (size, isArmored) = (bytes.count, true)
      return
    }
    (kind, parts) = try inspector.binary(content)
    (size, isArmored) = (content.count, false)
  }
}

/// Why content is not looked at.
public enum InspectionError: Error, Sendable, Hashable {
  /// More than `Inspection.maximumSize` bytes.
  case tooLong
  /// Nothing, or blanks.
  case empty
  /// A private key, which is not shown.
  case privateKey
  /// None of the known forms; `offset` is that of the first byte that fits none.
  case unrecognized(offset: Int, reason: String)
}

extension InspectionError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .tooLong: "longer than \(Inspection.maximumSize >> 20) MiB: no further than byte \(Inspection.maximumSize)"
    case .empty: "nothing is in it"
    case .privateKey: "it has a private key, which is not shown"
    case .unrecognized(let offset, let reason): "byte \(offset): \(reason)"
    }
  }
}

/// Content without control characters other than line ends and tabs.
struct PrintableText {
  let bytes: [UInt8]

  /// `nil` for anything else, which is binary.
  init?(_ bytes: [UInt8]) {
    guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || JSONScanner.isSpace($0) }),
      String(validating: bytes, as: UTF8.self) != nil
    else { return nil }
    self.bytes = bytes
  }

  var string: String { String(decoding: bytes, as: UTF8.self) }
  /// Whether a label of PEM is in it, also in a member of JSON.
  var hasPrivateKey: Bool {
    let label = Array("PRIVATE KEY".utf8)
    var rest = bytes[...]
    while let start = rest.firstIndex(of: label[0]) {
      if rest[start...].starts(with: label) { return true }
      rest = rest[(start + 1)...]
    }
    return false
  }

  /// Whether a line begins a block of PEM. Text may be before the first one (RFC 7468 section 2), such as the names that
  /// OpenSSL writes, or the byte order mark of an editor.
  var hasBlock: Bool {
    let label = Array("-----BEGIN ".utf8)
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    var rest = bytes[...]
    while let start = rest.firstIndex(of: label[0]) {
      if rest[start...].starts(with: label) {
        let before = bytes[..<start]
        if before.isEmpty || before.last == 0x0A || before.last == 0x0D || before.elementsEqual(mark) { return true }
      }
      rest = rest[(start + 1)...]
    }
    return false
  }

  /// The bytes without blanks around them.
  var trimmed: ArraySlice<UInt8> {
    let start = bytes.firstIndex { !JSONScanner.isSpace($0) } ?? bytes.startIndex
    let end = bytes.lastIndex { !JSONScanner.isSpace($0) }.map { $0 + 1 } ?? start
    return bytes[start..<end]
  }

  func base64() throws(InspectionError) -> [UInt8] {
    let text = bytes.filter { !JSONScanner.isSpace($0) }
    if let decoded = Base64.decode(anyForm: String(decoding: text, as: UTF8.self)) { return decoded }
    let stranger = bytes.firstIndex { byte in
      !JSONScanner.isSpace(byte) && !(0x61...0x7A).contains(byte.lowercasedASCII) && !(0x30...0x39).contains(byte)
        && !"+/-_=".utf8.contains(byte)
    }
    guard let stranger else {
      throw .unrecognized(offset: 0, reason: "base64 that is cut, or has a wrong padding")
    }
    throw .unrecognized(offset: stranger, reason: "a text that is no base64, JSON, PEM, JWT or header field")
  }
}
