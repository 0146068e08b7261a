/// A member of a provider's document. It is judged when it is used: a member that nothing uses refuses no document.
package struct Member<Value: Sendable & Hashable>: Sendable, Hashable {
  package let name: String
  /// The value; `nil` if the member is absent or unusable.
  package let value: Value?
  /// Why the value cannot be used, such as `expires_in is "soon", not a number`; `nil` if it can, or is absent.
  package let fault: String?

  /// The member with another value; `nil` from `transform` makes it unusable for `reason`.
  package func map<Other>(_ transform: (Value) -> Other?, otherwise reason: (Value) -> String) -> Member<Other> {
    guard let value else { return Member<Other>(name: name, value: nil, fault: fault) }
    let other = transform(value)
    return Member<Other>(name: name, value: other, fault: other == nil ? "\(name) is \(reason(value))" : nil)
  }
}

/// Reads the members of an object of a provider's document by their names: the one shape of all parsers of such documents.
///
/// `null`, an empty text and an empty list are no value: some providers write them in place of leaving a member out. A
/// number may be written as a text.
package struct ProviderMembers {
  private let container: KeyedDecodingContainer<Name>

  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// - Throws: An error of the decoder if there is no object.
  package init(from decoder: any Decoder) throws { container = try decoder.container(keyedBy: Name.self) }

  /// Whether the object has the member with a value other than `null`.
  package func has(_ name: String) -> Bool {
    let key = Name(stringValue: name)
    return container.contains(key) && (try? container.decodeNil(forKey: key)) == false
  }

  /// A text.
  ///
  /// - Parameter isSecret: Whether no message may contain the value.
  package func text(_ name: String, isSecret: Bool = false) -> Member<String> {
    guard has(name) else { return absent(name) }
    guard let text = try? container.decode(String.self, forKey: Name(stringValue: name)) else {
      return unusable(name, "a text", isSecret: isSecret)
    }
    return text.isEmpty ? absent(name) : Member(name: name, value: text, fault: nil)
  }

  /// A finite number, or a text that is one.
  package func number(_ name: String) -> Member<Double> {
    guard has(name) else { return absent(name) }
    let key = Name(stringValue: name)
    var number = try? container.decode(Double.self, forKey: key)
    if number == nil, let text = try? container.decode(String.self, forKey: key) {
      guard !text.isEmpty else { return absent(name) }
      // Of the forms that `Double` reads, those of JSON: no hexadecimal, no "nan".
      if text.utf8.count <= 64, text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }) { number = Double(text) }
    }
    guard let number, number.isFinite else { return unusable(name, "a number") }
    return Member(name: name, value: number, fault: nil)
  }

  /// A time of a JWT: a number that is written as one (RFC 7519, section 2).
  package func numericDate(_ name: String) -> Member<Double> {
    guard has(name) else { return absent(name) }
    guard let number = try? container.decode(Double.self, forKey: Name(stringValue: name)), number.isFinite else {
      return unusable(name, "a number")
    }
    return Member(name: name, value: number, fault: nil)
  }

  /// A truth value.
  package func truth(_ name: String) -> Member<Bool> {
    guard has(name) else { return absent(name) }
    let key = Name(stringValue: name)
    if let value = try? container.decode(Bool.self, forKey: key) { return Member(name: name, value: value, fault: nil) }
    switch try? container.decode(String.self, forKey: key) {
    case "true": return Member(name: name, value: true, fault: nil)
    case "false": return Member(name: name, value: false, fault: nil)
    case "": return absent(name)
    default: return unusable(name, "true or false")
    }
  }

  /// The members of an object; `nil` if it is absent, or no object.
  package func members(of name: String) -> ProviderMembers? {
    guard has(name), let inner = try? container.nestedContainer(keyedBy: Name.self, forKey: Name(stringValue: name))
    else { return nil }
    return ProviderMembers(container: inner)
  }

  private init(container: KeyedDecodingContainer<Name>) { self.container = container }

  /// A list of texts. One text is a list of one.
  ///
  /// - Parameter keepsEmpty: Whether empty elements stay, where each element counts.
  package func texts(_ name: String, keepsEmpty: Bool = false) -> Member<[String]> {
    guard has(name) else { return absent(name) }
    let key = Name(stringValue: name)
    var texts: [String]
    if let one = try? container.decode(String.self, forKey: key) {
      texts = one.isEmpty ? [] : [one]
    } else if let list = try? container.decode([String].self, forKey: key) {
      texts = keepsEmpty ? list : list.filter { !$0.isEmpty }
    } else {
      return unusable(name, "a list of texts")
    }
    return texts.isEmpty ? absent(name) : Member(name: name, value: texts, fault: nil)
  }

  private func absent<Value>(_ name: String) -> Member<Value> { Member(name: name, value: nil, fault: nil) }

  private func unusable<Value>(_ name: String, _ expected: String, isSecret: Bool = false) -> Member<Value> {
    let shown = (try? container.decode(ShownValue.self, forKey: Name(stringValue: name)))?.text(isSecret: isSecret)
    return Member(
      name: name, value: nil, fault: "\(name) is \(shown ?? "a value that cannot be read"), not \(expected)")
  }
}

/// A value as a message shows it, shortened.
package struct ShownValue: Decodable {
  private enum Kind { case text(String), number(Double), truth(Bool), list, object, other }
  private let kind: Kind

  package init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    if let text = try? value.decode(String.self) {
      kind = .text(text)
    } else if let truth = try? value.decode(Bool.self) {
      kind = .truth(truth)
    } else if let number = try? value.decode(Double.self) {
      kind = .number(number)
    } else if (try? decoder.unkeyedContainer()) != nil {
      kind = .list
    } else {
      kind = (try? decoder.container(keyedBy: NoName.self)) == nil ? .other : .object
    }
  }

  private struct NoName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  package func text(isSecret: Bool) -> String {
    switch kind {
    case .text(let text): isSecret ? "a text" : Self.quoted(text)
    case .number(let number): isSecret ? "a number" : Self.text(number)
    case .truth(let truth): "\(truth)"
    case .list: "a list"
    case .object: "an object"
    case .other: "a value that cannot be read"
    }
  }

  package static func text(_ number: Double) -> String { Int(exactly: number).map { "\($0)" } ?? "\(number)" }

  /// Scalars are counted: a character may have any number of combining marks.
  package static func quoted(_ text: String) -> String {
    let start = text.unicodeScalars.prefix(100)
    return "\"\(String(start))\(start.endIndex == text.unicodeScalars.endIndex ? "" : "…")\""
  }
}
