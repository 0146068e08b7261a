internal import ByteCoding
internal import CBOR

/// What is known of a data item before it is read.
indirect enum CBORShape: Sendable {
  case any
  case map([Member])
  /// The elements by their position; the last member stands for all further ones.
  case array([Member])
  case bytes(EmbeddedContent)

  /// A pair of a map, or an element of an array.
  struct Member: Sendable {
    /// The key as `CBORKey.text` writes it; empty for an element.
    let key: String
    /// The name, if the key has none.
    var name: String? = nil
    let meaning: String
    var shape: CBORShape = .any
    /// A part of a private key, which is not shown.
    var isSecret = false
  }
}

extension Inspector {
  /// The items in `range`: one by rule, and an error for bytes after it. `name` and `meaning` are those of the first.
  mutating func items(
    in bytes: [UInt8], _ range: Range<Int>, named name: String? = nil, meaning: String? = nil, as shape: CBORShape,
    depth: Int
  ) -> [InspectedNode] {
    // An error ends this sequence of items, and not the one around it.
    let wasBroken = isBroken
    isBroken = false
    defer { isBroken = wasBroken }
    var reader = CBORItemReader(bytes, range: range)
    guard var first = item(&reader, in: bytes, as: shape, depth: depth) else { return [] }
    if !first.isError {
      if let name { first.name = name }
      first.meaning = meaning
    }
    guard !isBroken, !isFull, !reader.isAtEnd else { return [first] }
    return [
      first, .broken(at: reader.offset, "further bytes after the data item: \(range.upperBound - reader.offset)"),
    ]
  }

  /// The next item with all that belongs to it; `nil` beyond a limit. An error is among its parts, or in its place.
  private mutating func item(
    _ reader: inout CBORItemReader, in bytes: [UInt8], as shape: CBORShape, depth: Int, isSecret: Bool = false
  ) -> InspectedNode? {
    if let limit = limit(at: reader.offset, depth: depth) { return limit }
    if isFull { return nil }
    let item: CBORItem
    do throws(CBORError) {
      item = try reader.next()
    } catch {
      isBroken = true
      return .broken(at: reader.offset, error.description)
    }
    var node = InspectedNode(
      offset: item.offset, header: item.head, length: 0, name: item.type, type: item.type,
      fault: item.isShortest ? nil : "not in its shortest form")
    switch item.content {
    case .array(let count): node.children = elements(&reader, in: bytes, count: count, as: shape, depth: depth + 1)
    case .map(let count): node.children = pairs(&reader, in: bytes, count: count, as: shape, depth: depth + 1)
    case .tag: node.children = [self.item(&reader, in: bytes, as: .any, depth: depth + 1)].compactMap(\.self)
    case .indefinite(let majorType):
      node.fault = "an indefinite length, which no verifier here accepts"
      node.children =
        majorType == 5
        ? pairs(&reader, in: bytes, count: nil, as: shape, depth: depth + 1)
        : elements(&reader, in: bytes, count: nil, as: shape, depth: depth + 1)
    case .end: break
    case .bytes(let range):
      if case .bytes(let content) = shape {
        node.children = parts(of: content, in: bytes, range, depth: depth + 1)
      } else {
        node.value = isSecret ? InspectedNode.secret : ValueText.hex(bytes[range])
      }
    case .text(let range):
      node.value = isSecret ? InspectedNode.secret : ValueText.text(bytes[range])
      if String(validating: bytes[range], as: UTF8.self) == nil { node.fault = "a text that is not UTF-8" }
    default: node.value = isSecret ? InspectedNode.secret : item.scalar
    }
    node.length = reader.offset - item.offset - item.head
    // Of an item of indefinite length that was read to its end, the last byte is the end mark.
    if case .indefinite = item.content, !isBroken, !isFull { node.length -= 1 }
    // A tag, an array and chunks of a string have the private key below them.
    return isSecret && !node.children.isEmpty ? node.hidden : node
  }

  /// - Parameter count: `nil` for an array up to its end mark.
  private mutating func elements(
    _ reader: inout CBORItemReader, in bytes: [UInt8], count: UInt64?, as shape: CBORShape, depth: Int
  ) -> [InspectedNode] {
    var members: [CBORShape.Member] = []
    if case .array(let known) = shape { members = known }
    var nodes: [InspectedNode] = []
    while count.map({ UInt64(nodes.count) < $0 }) ?? true, !isBroken, !isFull {
      let member = members.isEmpty ? nil : members[min(nodes.count, members.count - 1)]
      guard var node = item(&reader, in: bytes, as: member?.shape ?? .any, depth: depth) else { break }
      if count == nil, node.isEnd { break }
      if let member, !node.isError {
        node.name = member.name ?? member.key
        node.meaning = member.meaning
      }
      nodes.append(node)
    }
    return nodes
  }

  /// The values of a map's pairs, each with its key as its name.
  ///
  /// - Parameter count: `nil` for a map up to its end mark.
  private mutating func pairs(
    _ reader: inout CBORItemReader, in bytes: [UInt8], count: UInt64?, as shape: CBORShape, depth: Int
  ) -> [InspectedNode] {
    var members: [CBORShape.Member] = []
    if case .map(let known) = shape { members = known }
    var keys: Set<ArraySlice<UInt8>> = []
    var nodes: [InspectedNode] = []
    while count.map({ UInt64(nodes.count) < $0 }) ?? true, !isBroken, !isFull {
      let start = reader.offset
      guard let key = item(&reader, in: bytes, as: .any, depth: depth) else { break }
      if count == nil, key.isEnd { break }
      if isBroken || isFull {
        nodes.append(key)
        break
      }
      let isNew = keys.insert(bytes[start..<reader.offset]).inserted
      let text = key.plainValue
      let member = members.first { $0.key.hasSameBytes(as: text) }
      guard
        var node = item(
          &reader, in: bytes, as: member?.shape ?? .any, depth: depth, isSecret: member?.isSecret ?? false)
      else { break }
      if !node.isError {
        node.name = member?.name.map { "\($0) (\(text))" } ?? text
        node.meaning = member?.meaning
        if let fault = key.fault { node.fault = "the key at byte \(start): \(fault)" }
        if !isNew { node.fault = "the key at byte \(start) is in the map twice" }
      }
      nodes.append(node)
    }
    return members.isEmpty ? Self.withoutSecrets(nodes) : nodes
  }

  /// Hides the private part of a COSE key in a map of which nothing is known.
  private static func withoutSecrets(_ nodes: [InspectedNode]) -> [InspectedNode] {
    guard nodes.contains(where: { $0.name == "1" }), nodes.contains(where: { $0.name == "-4" }) else { return nodes }
    return nodes.map { $0.name == "-4" ? $0.hidden : $0 }
  }
}

extension InspectedNode {
  static let secret = "a private key, not shown"

  var isError: Bool { name == "error" && fault != nil }
  fileprivate var isEnd: Bool { type == CBORItem.endType }

  /// This part without its value and the parts below it. Errors stay: they contain nothing of the value.
  fileprivate var hidden: InspectedNode {
    var node = self
    (node.value, node.children) = (Self.secret, flattened.map(\.node).filter { $0.isError && $0.value == $0.fault })
    return node
  }

  /// The value of a key, a text without its quotation marks.
  fileprivate var plainValue: String {
    guard let value else { return type }
    return type == "text" && value.hasPrefix("\"") && value.hasSuffix("\"")
      ? String(value.dropFirst().dropLast()) : value
  }
}

extension CBORItem {
  /// The type, with the number of elements.
  fileprivate var type: String {
    switch content {
    case .unsigned, .negative: "integer"
    case .bytes: "bytes"
    case .text: "text"
    case .array(let count): "array of \(count)"
    case .map(let count): "map of \(count)"
    case .tag(let tag): "tag \(tag)"
    case .float: "float"
    case .boolean: "boolean"
    case .null, .undefined: "simple"
    case .indefinite(let majorType):
      switch majorType {
      case 2: "bytes in parts"
      case 3: "text in parts"
      case 4: "array without a count"
      default: "map without a count"
      }
    case .end: Self.endType
    }
  }

  fileprivate static let endType = "break"

  /// The value of an item without parts.
  fileprivate var scalar: String? {
    switch content {
    case .unsigned(let number): "\(number)"
    // -1 - 2^64 + 1 is no Int64.
    case .negative(let number): number == .max ? "-18446744073709551616" : "-\(number + 1)"
    case .float(let number): "\(number)"
    case .boolean(let truth): "\(truth)"
    case .null: "null"
    case .undefined: "undefined"
    default: nil
    }
  }
}
