internal import AndroidKeyAttestation
internal import AppAttest
internal import ByteCoding
internal import Cryptography

/// One element with its place.
private struct Element {
  let tag: UInt8
  /// The number of a context-specific tag.
  let number: Int?
  let offset: Int
  let content: Range<Int>
  /// The offset after the element.
  let end: Int

  var isConstructed: Bool { tag & 0x20 != 0 }
}

extension Inspector {
  /// The elements in `range`, one after another.
  ///
  /// - Parameter shapes: Of the elements in their order. Where they end, elements are read by their type.
  mutating func elements(
    in bytes: [UInt8], _ range: Range<Int>, rules: ASN1Reader.Rules, as shapes: [DERShape], repeats: Bool = false,
    depth: Int
  ) -> [InspectedNode] {
    var reader = ASN1Reader(bytes: bytes, range: range, rules: rules)
    var offset = range.lowerBound
    var rest = shapes[...]
    var nodes: [InspectedNode] = []
    while offset < range.upperBound, !isFull {
      if let limit = limit(at: offset, depth: depth) { return nodes + [limit] }
      let element: Element
      do throws(ASN1Error) {
        element = try Self.next(&reader, in: bytes)
      } catch {
        return nodes + [.broken(at: offset, error.description)]
      }
      offset = element.end
      while let shape = rest.first, shape.isOptional, !shape.matches(element.tag) { rest = rest.dropFirst() }
      let shape = rest.first.flatMap { $0.matches(element.tag) ? $0 : nil }
      if !repeats { rest = rest.dropFirst() }
      nodes.append(node(element, in: bytes, rules: rules, as: shape, depth: depth))
    }
    return nodes
  }

  /// Reads the next element.
  private static func next(_ reader: inout ASN1Reader, in bytes: [UInt8]) throws(ASN1Error) -> Element {
    let offset = reader.position
    let tag = bytes[offset]
    // A context-specific tag in the long form, as attestations of Android and extensions of Apple have it.
    if tag == 0xBF {
      let element = try reader.nextExplicit()
      return Element(
        tag: tag, number: element.number, offset: offset, content: element.bytes.startIndex..<element.bytes.endIndex,
        end: reader.position)
    }
    let element = try reader.next()
    return Element(
      tag: tag, number: tag & 0xC0 == 0x80 ? Int(tag & 0x1F) : nil, offset: offset,
      content: element.content.startIndex..<element.content.endIndex, end: reader.position)
  }

  private mutating func node(
    _ element: Element, in bytes: [UInt8], rules: ASN1Reader.Rules, as shape: DERShape?, depth: Int
  ) -> InspectedNode {
    let type = Self.type(of: element)
    var node = InspectedNode(
      offset: element.offset, header: element.content.lowerBound - element.offset, length: element.content.count,
      name: shape?.name ?? type, type: type, meaning: shape?.meaning)
    let content = bytes[element.content]
    func children(_ shapes: [DERShape], repeats: Bool = false, _ inspector: inout Inspector) -> [InspectedNode] {
      inspector.elements(
        in: bytes, element.content, rules: rules, as: shapes, repeats: repeats, depth: depth + 1)
    }
    switch shape?.content ?? .any {
    case .fields(let shapes) where element.isConstructed: node.children = children(shapes, &self)
    case .each(let shape) where element.isConstructed: node.children = children([shape], repeats: true, &self)
    case .name where element.isConstructed:
      node.children = children([.relativeName], repeats: true, &self)
      node.value = Self.distinguishedName(node.children)
    case .identified where element.isConstructed:
      node.children = children([.identifier], &self)
      node.value = node.children.first?.value
    case .certificateExtension where element.isConstructed:
      node = certificateExtension(node, element, in: bytes, depth: depth)
    case .receiptField where element.isConstructed:
      node = receiptField(node, element, in: bytes, rules: rules, depth: depth)
    case .receiptFields:
      node.children = receiptFields(element, in: bytes, rules: rules, depth: depth)
    case .authorizations where element.isConstructed:
      node.children = authorizations(in: bytes, element, depth: depth)
    case .string(let shape) where !element.isConstructed:
      // A BIT STRING begins with the number of unused bits.
      let start =
        element.tag == 0x03
        ? min(element.content.lowerBound + 1, element.content.upperBound)
        : element.content.lowerBound
      node.children = elements(
        in: bytes, start..<element.content.upperBound, rules: .der, as: [shape], depth: depth + 1)
    case .text where !element.isConstructed: node.value = ValueText.text(content)
    case .hexNumber where !element.isConstructed:
      let digits = ValueText.hex(content).drop { $0 == "0" }
      node.value = digits.isEmpty ? "0" : String(digits)
    case .words(let words) where !element.isConstructed:
      let number = Self.integer(content)
      node.value =
        number.map { number in "\(number)" + (words[number].map { " (\($0))" } ?? "") } ?? ValueText.hex(content)
    default:
      if element.isConstructed {
        node.children = children([], &self)
      } else {
        node.value = content.isEmpty ? nil : Self.value(of: content, tag: element.tag)
      }
    }
    return node
  }
}

// Structures whose parts depend on one of them.
extension Inspector {
  private mutating func certificateExtension(
    _ node: InspectedNode, _ element: Element, in bytes: [UInt8], depth: Int
  ) -> InspectedNode {
    var node = node
    var reader = ASN1Reader(bytes: bytes, range: element.content, rules: .der)
    let identifier = try? reader.objectIdentifier().description
    let known = identifier.flatMap { ObjectNames.extensions[$0] }
    node.children = elements(
      in: bytes, element.content, rules: .der,
      as: [
        .identifier,
        DERShape("critical", "whether a verifier that does not know it refuses", tags: [0x01], isOptional: true),
        DERShape("extnValue", nil, known?.content.map { .string($0) } ?? .any),
      ], depth: depth + 1)
    node.name = known?.name ?? identifier ?? node.name
    node.meaning = known?.meaning
    return node
  }

  private mutating func receiptField(
    _ node: InspectedNode, _ element: Element, in bytes: [UInt8], rules: ASN1Reader.Rules, depth: Int
  ) -> InspectedNode {
    var node = node
    var reader = ASN1Reader(bytes: bytes, range: element.content, rules: rules)
    let number = try? reader.unsignedInteger()
    let field = number.flatMap(ReceiptField.init)
    node.children = elements(
      in: bytes, element.content, rules: rules,
      as: [
        DERShape("type", "the number of the field"), DERShape("version", "of the field's type, always 1"),
        DERShape("value", nil, field?.content ?? .any),
      ], depth: depth + 1)
    node.name = field.map { "\($0)" } ?? "field \(number.map(String.init) ?? "without a number")"
    node.meaning = field?.meaning ?? "a field that is not known, and ignored"
    node.value = node.children.last?.value
    return node
  }

  /// The payload of a receipt. Its segments are joined if there are several.
  private mutating func receiptFields(
    _ element: Element, in bytes: [UInt8], rules: ASN1Reader.Rules, depth: Int
  ) -> [InspectedNode] {
    let payload = EmbeddedContent.der(.receiptFields)
    guard element.isConstructed else { return parts(of: payload, in: bytes, element.content, depth: depth + 1) }
    var nodes = elements(in: bytes, element.content, rules: rules, as: [.segment], repeats: true, depth: depth + 1)
    let segments = nodes.filter { !$0.isError }
    guard segments.count > 1 else {
      if let segment = segments.first, !isFull {
        let start = segment.offset + segment.header
        nodes[0].value = nil
        nodes[0].children = parts(of: payload, in: bytes, start..<start + segment.length, depth: depth + 2)
      }
      return nodes
    }
    let joined = segments.flatMap { bytes[$0.offset + $0.header..<$0.offset + $0.header + $0.length] }
    var whole = InspectedNode(
      offset: element.content.lowerBound, length: joined.count, name: "segments joined",
      meaning: "offsets below count from the first byte of the joined segments")
    whole.children = parts(of: payload, in: joined, joined.indices, depth: depth + 2)
    return nodes + [whole]
  }

  private mutating func authorizations(in bytes: [UInt8], _ element: Element, depth: Int) -> [InspectedNode] {
    var reader = ASN1Reader(bytes: bytes, range: element.content, rules: .der)
    var offset = element.content.lowerBound
    var nodes: [InspectedNode] = []
    while offset < element.content.upperBound, !isFull {
      if let limit = limit(at: offset, depth: depth + 1) { return nodes + [limit] }
      let entry: ASN1Reader.ExplicitElement
      do throws(ASN1Error) {
        entry = try reader.nextExplicit()
      } catch {
        return nodes + [.broken(at: offset, error.description)]
      }
      let content = entry.bytes.startIndex..<entry.bytes.endIndex
      let tag = AuthorizationTag(rawValue: entry.number)
      var node = InspectedNode(
        offset: offset, header: content.lowerBound - offset, length: content.count,
        name: tag.map { "\($0)" } ?? "unknown", type: "[\(entry.number)]", meaning: tag?.meaning)
      node.children = elements(
        in: bytes, content, rules: .der, as: [.authorization(tag)], depth: depth + 2)
      // An explicit tag has one element, which needs no line of its own.
      if node.children.count == 1, node.children[0].fault == nil {
        let child = node.children[0]
        (node.value, node.children) = (child.value, child.children)
        node.type += " \(child.type)"
        node.header += child.header
        node.length = child.length
      }
      nodes.append(node)
      offset = content.upperBound
    }
    return nodes
  }
}

// Values by their type.
extension Inspector {
  private static func type(of element: Element) -> String {
    if let number = element.number { return "[\(number)]" }
    return typeNames[element.tag] ?? "tag 0x" + Hex.encode([element.tag])
  }

  private static let typeNames: [UInt8: String] = [
    0x01: "BOOLEAN", 0x02: "INTEGER", 0x03: "BIT STRING", 0x04: "OCTET STRING", 0x05: "NULL",
    0x06: "OBJECT IDENTIFIER", 0x0A: "ENUMERATED", 0x0C: "UTF8String", 0x12: "NumericString", 0x13: "PrintableString",
    0x14: "T61String", 0x16: "IA5String", 0x17: "UTCTime", 0x18: "GeneralizedTime", 0x1E: "BMPString",
    0x24: "OCTET STRING in segments", 0x30: "SEQUENCE", 0x31: "SET",
  ]

  private static func value(of content: ArraySlice<UInt8>, tag: UInt8) -> String {
    switch tag {
    case 0x01: content.count == 1 && content.first == 0 ? "false" : content.count == 1 ? "true" : ValueText.hex(content)
    case 0x02, 0x0A: integer(content).map(String.init) ?? ValueText.hex(content)
    case 0x06: ObjectNames.text(content)
    case 0x0C, 0x12, 0x13, 0x14, 0x16, 0x17, 0x18: ValueText.text(content)
    default: ValueText.hex(content)
    }
  }

  /// A number of at most eight bytes, in two's complement.
  private static func integer(_ content: ArraySlice<UInt8>) -> Int? {
    guard let sign = content.first, content.count <= 8 else { return nil }
    return Int(content.reduce(sign >= 0x80 ? -1 as Int64 : 0) { $0 << 8 | Int64($1) })
  }

  /// `CN=…, O=…` from the attributes of a name.
  private static func distinguishedName(_ sets: [InspectedNode]) -> String {
    let attributes = sets.flatMap(\.children).compactMap { attribute -> String? in
      guard attribute.children.count == 2, let name = attribute.children[0].value,
        let value = attribute.children[1].value
      else { return nil }
      return "\(ObjectNames.short(name))=\(value)"
    }
    return attributes.joined(separator: ", ")
  }
}
