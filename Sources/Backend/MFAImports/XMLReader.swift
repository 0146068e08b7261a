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
    /// Bytes of the text of one element, and of one value of an attribute.
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
  /// Between namespace and name: no character of either.
  private static let separator: CChar = 0x0A

  private let limits: XMLReader.Limits
  private var open: [XMLElement] = []
  private var root: XMLElement?
  private var count = 0
  private var reason: String?
  private var parser: XML_Parser?

  init(_ limits: XMLReader.Limits) { self.limits = limits }

  deinit { if let parser { XML_ParserFree(parser) } }

  func read(_ document: [UInt8]) throws(XMLFault) -> XMLElement {
    guard let parser = XML_ParserCreateNS(nil, Self.separator) else {
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
    var values: [String: String] = [:]
    var index = 0
    while let attributes, let key = attributes[index], let value = attributes[index + 1] {
      guard index / 2 < limits.attributes else {
        return stop("an element has more than \(limits.attributes) attributes")
      }
      let (namespace, local) = Self.parts(of: key)
      let text = String(cString: value)
      guard text.utf8.count <= limits.text else { return stop("an attribute is longer than \(limits.text) bytes") }
      if namespace.isEmpty { values[local] = text }
      index += 2
    }
    let (namespace, local) = Self.parts(of: name)
    open.append(XMLElement(namespace: namespace, name: local, attributes: values, line: line))
  }

  private func end() {
    guard reason == nil, let element = open.popLast() else { return }
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

  private static func parts(of name: UnsafePointer<CChar>) -> (namespace: String, local: String) {
    let text = String(cString: name)
    guard let end = text.utf8.lastIndex(of: UInt8(bitPattern: separator)) else { return ("", text) }
    return (String(text[..<end]), String(text[text.utf8.index(after: end)...]))
  }
}
