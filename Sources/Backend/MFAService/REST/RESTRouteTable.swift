internal import ByteCoding
internal import Foundation
internal import MFAWire

/// Maps a method and a path, with or without the prefix `/api/v1`, to an operation.
struct RESTRouteTable: Sendable {
  static let prefix = ["api", "v1"]
  /// Longer than any path with its query, in bytes: three names of 512 bytes, percent-encoded.
  static let longestTarget = 5120
  /// The routes, by the number of their segments.
  private let routes: [Int: [Route]]

  private struct Route: Sendable {
    let operation: Operation
    let segments: [Segment]
  }

  private enum Segment: Sendable, Hashable {
    case literal(String)
    case field(String)
  }

  init(_ operations: [Operation]) {
    let all = operations.map { operation in
      Route(
        operation: operation,
        segments: operation.path.split(separator: "/").map { segment in
          segment.hasPrefix("{") ? .field(String(segment.dropFirst().dropLast())) : .literal(String(segment))
        })
    }
    routes = Dictionary(grouping: all, by: \.segments.count)
  }

  struct Match {
    let operation: Operation
    /// The request fields in the path.
    let fields: [(name: String, value: String)]
  }

  /// Finds the operation of a request.
  ///
  /// - Parameter query: the query items, which may also be request fields.
  /// - Throws: `.unknownOperation` if no operation has the path; `.methodNotAllowed` if only operations with other
  ///   methods have it; `.fieldGivenTwice` if a request field is in the query twice, or in the path and the query.
  func match(
    _ method: String, _ path: String, query: [(name: String, value: String)] = []
  ) throws(OperationInputError) -> Match {
    guard let segments = Self.segments(of: path) else { throw .unknownOperation }
    let all = (routes[segments.count] ?? []).compactMap { route in
      Self.fields(of: route.segments, in: segments).map { Match(operation: route.operation, fields: $0) }
    }
    // A literal path takes precedence over a path with a field (OpenAPI 3.1, "Path Templating Matching").
    let least = all.map(\.fields.count).min()
    let candidates = all.filter { $0.fields.count == least }
    if let match = candidates.first(where: { $0.operation.method.rawValue == method }) {
      return try match.adding(query)
    }
    throw candidates.isEmpty ? .unknownOperation : .methodNotAllowed(candidates.map(\.operation.method.rawValue))
  }

  /// The decoded segments after the prefix; `nil` if the path is not in normal form.
  private static func segments(of path: String) -> [String]? {
    guard path.hasPrefix("/") else { return nil }
    var segments: [String] = []
    for part in path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      let part = Substring(part)
      let decoded = part.utf8.contains(UInt8(ascii: "%")) ? part.removingPercentEncoding : String(part)
      guard let text = decoded, !text.isEmpty, text != ".", text != ".." else { return nil }
      segments.append(text)
    }
    let hasPrefix = segments.count >= prefix.count && zip(segments, prefix).allSatisfy { $0.hasSameBytes(as: $1) }
    return hasPrefix ? Array(segments.dropFirst(prefix.count)) : segments
  }

  private static func fields(of pattern: [Segment], in segments: [String]) -> [(name: String, value: String)]? {
    guard pattern.count == segments.count else { return nil }
    var fields: [(name: String, value: String)] = []
    for (expected, found) in zip(pattern, segments) {
      switch expected {
      case .literal(let text): if !text.hasSameBytes(as: found) { return nil }
      case .field(let name): fields.append((name, found))
      }
    }
    return fields
  }
}

extension RESTRouteTable.Match {
  /// Adds the query items that are request fields.
  fileprivate func adding(_ query: [(name: String, value: String)]) throws(OperationInputError) -> RESTRouteTable.Match
  {
    guard case .object(let properties) = operation.requestSchema else { return self }
    var all = fields
    for item in query where properties.contains(where: { $0.name.hasSameBytes(as: item.name) }) {
      if all.contains(where: { $0.name.hasSameBytes(as: item.name) }) { throw .fieldGivenTwice(item.name) }
      all.append(item)
    }
    return RESTRouteTable.Match(operation: operation, fields: all)
  }

  /// The fields as the JSON document that the operation decodes.
  var document: [UInt8] {
    let members = fields.map { field in
      JSONText.quote(field.name) + ":" + (isInteger(field.name) ? integer(field.value) : JSONText.quote(field.value))
    }
    return Array(("{" + members.joined(separator: ",") + "}").utf8)
  }

  private func isInteger(_ name: String) -> Bool {
    guard case .object(let properties) = operation.requestSchema,
      case .integer = properties.first(where: { $0.name == name })?.schema
    else { return false }
    return true
  }

  /// A value that is not an integer stays a string, which the operation then refuses as a wrong type.
  private func integer(_ text: String) -> String { Int64(text).map(String.init) ?? JSONText.quote(text) }
}
