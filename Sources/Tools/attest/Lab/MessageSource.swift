internal import Foundation
internal import Locking

/// Where the simulated phone receives its messages.
public protocol MessageSource: Sendable {
  /// The codes that were sent to `address`, a number in E.164 or an address of e-mail, oldest first.
  func codes(to address: String) throws(MessageSourceError) -> [String]
}

/// Why messages cannot be read, as a text for people.
public struct MessageSourceError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The reason.
  public let description: String

  /// Creates an error, for other implementations of `MessageSource`.
  public init(_ description: String) { self.description = description }
}

/// The log of a backend that writes messages to it: lines with `SMS to NUMBER: Your OTP is CODE`, or with `E-mail to` and
/// an address, whose capitals do not count.
///
/// Reads what was appended since the last call. A log that became shorter is read again from its beginning.
public final class LogMessages: MessageSource {
  private struct State {
    var offset: UInt64 = 0
    /// The bytes of the last line, which is not complete.
    var rest: [UInt8] = []
    var codes: [String: [String]] = [:]
  }

  private let path: String
  private let state = LockedValue(State())

  /// Reads the file at `path`.
  public init(path: String) { self.path = path }

  /// The codes in the lines that are complete.
  public func codes(to address: String) throws(MessageSourceError) -> [String] {
    try state.withLock { state throws(MessageSourceError) in
      try read(into: &state)
      return state.codes[address.lowercased()] ?? []
    }
  }

  private func read(into state: inout State) throws(MessageSourceError) {
    guard let file = FileHandle(forReadingAtPath: path) else {
      throw MessageSourceError("the log of the backend cannot be read: \(path)")
    }
    defer { try? file.close() }
    do {
      if try file.seekToEnd() < state.offset { (state.offset, state.rest) = (0, []) }
      try file.seek(toOffset: state.offset)
      while let data = try file.read(upToCount: 1 << 16), !data.isEmpty {
        state.offset += UInt64(data.count)
        state.rest += data
        var lines = state.rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        state.rest = Array(lines.removeLast())
        for line in lines {
          guard let (address, code) = Self.message(in: line) else { continue }
          state.codes[address, default: []].append(code)
        }
      }
    } catch {
      throw MessageSourceError("the log of the backend cannot be read: \(path): \(error)")
    }
  }

  /// The recipient, in small letters, and the code of a line; `nil` for other lines.
  static func message(in line: some Sequence<UInt8>) -> (address: String, code: String)? {
    let text = String(decoding: Array(line), as: UTF8.self)
    let separator = ": Your OTP is "
    for kind in ["SMS to ", "E-mail to "] {
      guard let start = text.firstRange(of: kind) else { continue }
      let rest = text[start.upperBound...]
      let address = rest.prefix { $0 != ":" && !$0.isWhitespace }
      guard address.hasPrefix("+") == (kind == "SMS to "), rest[address.endIndex...].hasPrefix(separator) else {
        continue
      }
      let code = rest[address.endIndex...].dropFirst(separator.count).prefix { $0.isASCII && $0.isNumber }
      return address.isEmpty || code.isEmpty ? nil : (address.lowercased(), String(code))
    }
    return nil
  }
}
