internal import CExpat

/// An element of an XML document.
struct XMLElement: Sendable {
  /// The namespace; empty for none.
  let namespace: String
  let name: String
  /// The values by name, without those of a namespace.
  let attributes: [String: String]
  fileprivate(set) var children: [XMLElement] = []
  /// The text between the elements.
  fileprivate(set) var text = ""
  /// The line of its start tag, counted from 1.
  let line: Int

  /// The first child with this name.
  subscript(name: String) -> XMLElement? { children.first { $0.name == name } }
}

/// Why a document cannot be read.
struct XMLFault: Error, Sendable, Hashable {
  let line: Int
  let reason: String
}

/// Reads XML 1.0 with namespaces, by Expat. A document type declaration is refused, and with it every entity of a
/// document's own: nothing is fetched and nothing is expanded.
///
/// Namespaces are resolved here: Expat would write the namespace out in each name, so a long one and many attributes
/// would need a multiple of the document's size.
enum XMLReader {
  /// How much a document may have.
  struct Limits: Sendable {
    /// Bytes of the document.
    var bytes = 16 << 20
    /// Elements within each other.
    var depth = 32
    /// Elements in all.
    var elements = 1_000_000
    /// Attributes of one element.
    var attributes = 32
    /// Namespaces that are in effect at once.
    var namespaces = 64
    /// Bytes of a name with its prefix, and of a namespace.
    var name = 1 << 10
    /// Bytes of one value of an attribute.
    var attribute = 1 << 10
    /// Bytes of the text of one element.
    var text = 1 << 16
  }

  /// The root element of `document`.
  ///
  /// - Throws: `XMLFault` for a document that is malformed or too large.
  static func read(_ document: [UInt8], _ limits: Limits = Limits()) throws(XMLFault) -> XMLElement {
    guard document.count <= limits.bytes else {
      throw XMLFault(line: 1, reason: "the document is larger than \(limits.bytes) bytes")
    }
    let reader = Expat(limits)
    return try reader.read(document)
  }
}

/// One run of Expat.
private final class Expat {
  private let limits: XMLReader.Limits
  private var open: [XMLElement] = []
  /// The namespaces by their prefixes, for the document and each open element; the prefix of the default one is empty.
  private var namespaces = [["xml": "http://www.w3.org/XML/1998/namespace"]]
  private var root: XMLElement?
  private var count = 0
  private var reason: String?
  private var parser: XML_Parser?

  init(_ limits: XMLReader.Limits) { self.limits = limits }

  deinit { if let parser { XML_ParserFree(parser) } }

  func read(_ document: [UInt8]) throws(XMLFault) -> XMLElement {
    guard let parser = XML_ParserCreate(nil) else {
      throw XMLFault(line: 1, reason: "no memory")
    }
    self.parser = parser
    XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
    XML_SetElementHandler(
      parser,
      { data, name, attributes in Expat.of(data)?.begin(name, attributes) },
      { data, _ in Expat.of(data)?.end() })
    XML_SetCharacterDataHandler(parser) { data, text, length in Expat.of(data)?.add(text, length) }
    XML_SetStartDoctypeDeclHandler(parser) { data, _, _, _, _ in
      Expat.of(data)?.stop("a document type declaration is refused")
    }
    let status = withExtendedLifetime(self) {
      document.withUnsafeBytes { bytes in
        XML_Parse(parser, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count), 1)
      }
    }
    guard status == XML_STATUS_OK, let root else {
      let text = XML_ErrorString(XML_GetErrorCode(parser)).map { String(cString: $0) } ?? "malformed"
      throw XMLFault(line: line, reason: reason ?? "not well-formed XML: \(text)")
    }
    return root
  }

  private static func of(_ data: UnsafeMutableRawPointer?) -> Expat? {
    data.map { Unmanaged<Expat>.fromOpaque($0).takeUnretainedValue() }
  }

  private var line: Int { parser.map { Int(clamping: XML_GetCurrentLineNumber($0)) } ?? 0 }

  /// Ends the parser's work. Handlers may still be called for what it has read.
  private func stop(_ reason: String) {
    if self.reason == nil { self.reason = reason }
    if let parser { _ = XML_StopParser(parser, XML_Bool(XML_FALSE)) }
  }

  private func begin(
    _ name: UnsafePointer<CChar>?, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?
  ) {
    guard reason == nil, let name else { return }
    count += 1
    guard count <= limits.elements else { return stop("the document has more than \(limits.elements) elements") }
    guard open.count < limits.depth else {
      return stop("elements stand within each other more than \(limits.depth) times")
    }
    do throws(Stop) {
      let (values, declared) = try self.values(attributes)
      let (prefix, local) = try parts(of: name)
      try check(prefix, isIn: declared)
      open.append(XMLElement(namespace: declared[prefix] ?? "", name: local, attributes: values, line: line))
      namespaces.append(declared)
    } catch {
      stop(error.reason)
    }
  }

  /// The attributes without a prefix, and the namespaces that are declared within the element.
  private func values(
    _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?
  ) throws(Stop) -> (values: [String: String], namespaces: [String: String]) {
    var values: [String: String] = [:]
    var declared = namespaces[namespaces.count - 1]
    var prefixes: [String] = []
    var index = 0
    while let attributes, let key = attributes[index], let value = attributes[index + 1] {
      guard index / 2 < limits.attributes else {
        throw Stop("an element has more than \(limits.attributes) attributes")
      }
      let (prefix, local) = try parts(of: key)
      if prefix == "xmlns" || (prefix.isEmpty && local == "xmlns") {
        let name = prefix.isEmpty ? "" : local
        declared[name] = try namespace(value, of: name)
        guard declared.count <= limits.namespaces else {
          throw Stop("more than \(limits.namespaces) namespaces have a prefix at once")
        }
      } else {
        guard let text = Self.text(value, atMost: limits.attribute) else {
          throw Stop("an attribute is longer than \(limits.attribute) bytes")
        }
        if prefix.isEmpty { values[local] = text } else { prefixes.append(prefix) }
      }
      index += 2
    }
    // A declaration may come after the attribute that uses it.
    for prefix in prefixes { try check(prefix, isIn: declared) }
    return (values, declared)
  }

  /// The namespace that a declaration gives to `prefix` (Namespaces in XML 1.0, sections 2.2 and 3); `nil` for none.
  private func namespace(_ value: UnsafePointer<CChar>, of prefix: String) throws(Stop) -> String? {
    guard let text = Self.text(value, atMost: limits.name) else {
      throw Stop("a namespace is longer than \(limits.name) bytes")
    }
    guard prefix != "xml", prefix != "xmlns" else { throw Stop("the prefix \(prefix) is reserved") }
    guard prefix.isEmpty || !text.isEmpty else { throw Stop("the namespace of a prefix is empty") }
    return text.isEmpty ? nil : text
  }

  private func check(_ prefix: String, isIn namespaces: [String: String]) throws(Stop) {
    guard prefix.isEmpty || namespaces[prefix] != nil else {
      throw Stop("the prefix \(String(prefix.unicodeScalars.prefix(80))) is not declared")
    }
  }

  private func end() {
    guard reason == nil, let element = open.popLast() else { return }
    namespaces.removeLast()
    if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
  }

  private func add(_ text: UnsafePointer<CChar>?, _ length: Int32) {
    guard reason == nil, !open.isEmpty, let text, length > 0 else { return }
    let bytes = UnsafeRawBufferPointer(start: text, count: Int(length))
    // Expat hands over UTF-8 of whole characters.
    open[open.count - 1].text += String(decoding: bytes, as: UTF8.self)
    if open[open.count - 1].text.utf8.count > limits.text {
      stop("the text of an element is longer than \(limits.text) bytes")
    }
  }

  /// The prefix of a name, empty for none, and the name without it.
  private func parts(of name: UnsafePointer<CChar>) throws(Stop) -> (prefix: String, local: String) {
    guard let text = Self.text(name, atMost: limits.name) else {
      throw Stop("a name is longer than \(limits.name) bytes")
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts.allSatisfy({ !$0.isEmpty }), let local = parts.last else {
      throw Stop("a name has a colon in the wrong place")
    }
    return (parts.count == 2 ? String(parts[0]) : "", String(local))
  }

  /// The text up to its zero byte; `nil` if it is longer than `most` bytes, of which no more are read.
  private static func text(_ pointer: UnsafePointer<CChar>, atMost most: Int) -> String? {
    guard (0...most).contains(where: { pointer[$0] == 0 }) else { return nil }
    return String(cString: pointer)
  }
}

/// Why the parser is stopped.
private struct Stop: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}
