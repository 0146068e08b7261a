import TestSupport
import Transport

@testable import TransportEngine

extension RequestHead {
  static func parse(_ bytes: [UInt8], limits: HeadLimits = .standard) -> HeadParse {
    bytes.withUnsafeBufferPointer { parse($0, limits: limits) }
  }

  static func parse(_ text: String, limits: HeadLimits = .standard) -> HeadParse {
    parse(Array(text.utf8), limits: limits)
  }
}

extension RequestHead {
  /// Parses `bytes` as they arrive in pieces of `size` bytes, like a connection: a piece without a line feed completes
  /// nothing. Returns the outcome, and the number of bytes that the calls scanned together.
  static func parse(
    _ bytes: [UInt8], inPiecesOf size: Int, limits: HeadLimits = .standard
  ) -> (outcome: HeadParse, scanned: Int) {
    var (fields, start, scanned): (ScannedFields?, Int, Int) = (nil, 0, 0)
    var outcome = HeadParse.incomplete
    while start < bytes.count, outcome == .incomplete {
      let end = min(start + size, bytes.count)
      if bytes[start..<end].contains(UInt8(ascii: "\n")) || end == bytes.count {
        scanned += end - (fields?.range.upperBound ?? 0)
        outcome = bytes[..<end].withUnsafeBufferPointer {
          parse($0, continuing: &fields, limits: limits, unread: nil)
        }
      }
      start = end
    }
    return (outcome, scanned)
  }
}

extension ResponseHead {
  static func parse(_ bytes: [UInt8], limits: HeadLimits = .response()) -> ResponseParse {
    bytes.withUnsafeBufferPointer { parse($0, limits: limits) }
  }

  static func parse(_ text: String) -> ResponseParse { parse(Array(text.utf8)) }
}

extension HeadParse {
  var head: RequestHead? {
    if case .head(let head, _) = self { head } else { nil }
  }
}

extension ResponseParse {
  var head: ResponseHead? {
    if case .head(let head, _) = self { head } else { nil }
  }
}

/// Returns a request with `line`, a `Host` field, and `fields`.
func request(_ line: String = "GET / HTTP/1.1", _ fields: [String] = [], host: String? = "gate.example") -> String {
  let host = host.map { ["Host: \($0)"] } ?? []
  return ([line] + host + fields).map { $0 + "\r\n" }.joined() + "\r\n"
}

/// Returns a valid opening handshake in which `replacing` replaces the fields of the same names; `nil` removes a
/// field.
func handshake(_ line: String = "GET / HTTP/1.1", replacing: [(String, String?)] = [], adding: [String] = []) -> String
{
  var fields = [
    ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Version", "13"),
  ]
  for (name, value) in replacing {
    fields.removeAll { $0.0 == name }
    if let value { fields.append((name, value)) }
  }
  return request(line, fields.map { "\($0.0): \($0.1)" } + adding)
}

/// Checks that the outcome of `parse` does not depend on how `bytes` arrive.
///
/// Every prefix gives `incomplete` up to some length, and from there on the outcome of the whole. Returns that length
/// and a description of the violation, or `nil` if there is none.
func checkSplits<Outcome: Equatable>(
  _ bytes: [UInt8], incomplete: Outcome, parse: ([UInt8]) -> Outcome
) -> (settledAt: Int, broken: String?) {
  let whole = parse(bytes)
  var settled: Int?
  for end in 0...bytes.count {
    let outcome = parse(Array(bytes[..<end]))
    if outcome == whole, whole != incomplete {
      settled = settled ?? end
    } else if outcome != incomplete || settled != nil {
      return (end, "\(end) bytes give \(outcome), all give \(whole)")
    }
  }
  return (settled ?? bytes.count, nil)
}
