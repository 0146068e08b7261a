internal import AppAttest
internal import ByteCoding
internal import Commands
internal import FoundationEssentials
internal import GateRuntime

/// What a file of `sallyport verify` contains: an object, and values that came with it.
struct VerifyContent {
  /// The kind of object that a command verifies.
  enum Kind: String {
    case attestation
    case assertion
    case receipt

    /// With its article, for people.
    var text: String {
      switch self {
      case .attestation: "an attestation of App Attest"
      case .assertion: "an assertion"
      case .receipt: "a receipt"
      }
    }
  }

  /// The bytes of the object, decoded from base64.
  let object: [UInt8]
  /// The key identifier of a registration or of headers; `nil` for an object alone.
  let keyID: KeyID?
  /// The nonce of a registration or of headers; `nil` for an object alone.
  let nonce: [UInt8]?

  /// Recognizes the form of `content`: the body of a registration, the headers of an assertion, or an object.
  ///
  /// This is unambiguous: objects in binary have a byte that is not text, and base64 has neither braces nor colons.
  ///
  /// - Parameter name: The name of the file, for errors.
  /// - Throws: `.badData` for a registration or headers of another kind of object, and for a malformed value in them.
  init(_ content: [UInt8], of kind: Kind, named name: String) throws(Failure) {
    let name = TerminalText.printable(name)
    guard let values = VerifyValues(content) else {
      (object, keyID, nonce) = (VerifyInput.unarmored(content), nil, nil)
      return
    }
    guard values.kind == kind, !values.isAndroid else {
      throw Failure(
        .badData, "\(name): \(values.form), not \(kind.text)",
        hint: values.isAndroid
          ? "`sallyport verify android` explains the chain of an Android device"
          : "`sallyport verify \(values.kind.rawValue)` explains it")
    }
    guard values.repeated.isEmpty else {
      throw Failure(
        .badData, "\(name): \(values.repeated.joined(separator: ", ")) occurs more than once, which the gate refuses",
        hint: "keep the headers of one request")
    }
    func value<Value>(_ member: String, _ text: String?, _ form: String, _ read: (String) -> Value?)
      throws(Failure) -> Value
    {
      guard let value = text.flatMap(read) else {
        throw Failure(
          .badData, "\(name): \(member) is \(text == nil ? "missing" : "not \(form)")",
          hint: "send it as the gate expects it: \(member) is \(form)")
      }
      return value
    }
    object = try value(values.members.object, values.object, "base64") { Base64.decode(anyForm: $0) }
    keyID = try value(values.members.keyID, values.keyID, "the base64 of 32 bytes") { KeyID(received: $0) }
    nonce = try value(values.members.nonce, values.nonce, "64 hex digits in lower case") { text in
      Hex.decode(lowercase: text).flatMap { $0.count == 32 ? $0 : nil }
    }
  }
}

/// The texts of a registration's body, or of the headers of an assertion.
private struct VerifyValues {
  let kind: VerifyContent.Kind
  let isAndroid: Bool
  let members: (object: String, keyID: String, nonce: String)
  let object: String?
  let keyID: String?
  let nonce: String?
  /// The names of the headers that occur more than once.
  private(set) var repeated: [String] = []

  /// What the file is, for people.
  var form: String {
    switch kind {
    case .attestation: isAndroid ? "the registration of an Android device" : "the body of a registration"
    case .assertion, .receipt: "the headers of an assertion"
    }
  }

  private static let registration = (object: "attestation", keyID: "keyId", nonce: "nonce")
  private static let headers = (
    object: "X-App-Assert-Data", keyID: "X-App-Assert-KeyId", nonce: "X-App-Assert-Nonce"
  )

  /// `nil` if `content` is neither of the two.
  init?(_ content: [UInt8]) {
    guard content.count <= InputFile.longest, let text = String(validating: content, as: UTF8.self) else { return nil }
    guard let body = Self.object(in: content) else {
      let fields = text.split(whereSeparator: \.isNewline).compactMap { line -> (String, String)? in
        guard let colon = line.firstIndex(of: ":") else { return nil }
        let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        return (line[..<colon].lowercased(), String(value))
      }
      self.init(headers: fields)
      return
    }
    let texts = body.compactMapValues { if case .text(let text) = $0 { text } else { nil } }
    if ["attestation", "chain", "keyId"].contains(where: { body[$0] != nil }) {
      self.init(
        kind: .attestation,
        isAndroid: texts["platform"] == "android" || body["attestation"] == nil && body["chain"] != nil,
        members: Self.registration, values: texts)
    } else {
      self.init(headers: texts.map { ($0.key.lowercased(), $0.value) })
    }
  }

  /// - Parameter fields: Names in lower case, and values.
  private init?(headers fields: [(String, String)]) {
    let counts = Dictionary(fields.map { ($0.0, 1) }, uniquingKeysWith: +)
    let fields = Dictionary(fields) { first, _ in first }
    let (names, object) = (Self.headers, Self.headers.object.lowercased())
    guard fields[object] != nil else { return nil }
    let values = [names.object, names.keyID, names.nonce].map { ($0, fields[$0.lowercased()]) }
    self.init(
      kind: .assertion, isAndroid: false, members: names,
      values: Dictionary(uniqueKeysWithValues: values).compactMapValues(\.self))
    repeated = [names.object, names.keyID, names.nonce].filter { counts[$0.lowercased()] ?? 0 > 1 }
  }

  /// - Parameter values: The texts by the names in `members`.
  private init(
    kind: VerifyContent.Kind, isAndroid: Bool, members: (object: String, keyID: String, nonce: String),
    values: [String: String]
  ) {
    (self.kind, self.isAndroid, self.members) = (kind, isAndroid, members)
    (object, keyID, nonce) = (values[members.object], values[members.keyID], values[members.nonce])
  }

  /// A member of a JSON object, as far as it is of interest.
  private enum Member: Decodable {
    case text(String)
    case other

    init(from decoder: any Decoder) throws {
      self = (try? decoder.singleValueContainer().decode(String.self)).map(Self.text) ?? .other
    }
  }

  /// The members of the JSON object `content`; `nil` for anything else.
  private static func object(in content: [UInt8]) -> [String: Member]? {
    guard JSONGrammar.accepts(content) else { return nil }
    return try? JSONDecoder().decode([String: Member].self, from: Data(content))
  }
}
