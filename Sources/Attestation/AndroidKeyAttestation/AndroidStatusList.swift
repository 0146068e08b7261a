internal import ByteCoding

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Google's list of revoked attestation certificates: https://android.googleapis.com/attestation/status
///
/// An entry takes 21 bytes, about 34 KB for the list of March 2026.
public struct AndroidStatusList: Sendable, Hashable {
  /// The maximum size of a list in bytes. The list of March 2026 has 167 KB.
  public static let maximumSize = 8 << 20
  /// The maximum number of entries. The list of March 2026 has 1,640.
  public static let maximumEntries = 100_000

  /// RFC 5280 section 4.1.2.2: a serial number has at most 20 octets.
  private static let serialSize = 20

  /// The serial numbers, filled up with zeros at the front, in ascending order.
  private let serials: [UInt8]
  /// The place of each entry's reason in `reasons`.
  private let reasonNumbers: [UInt8]
  private let reasons: [String]

  /// The number of revoked certificates.
  public var count: Int { reasonNumbers.count }

  /// The memory for the entries in bytes.
  var memory: Int { serials.capacity + reasonNumbers.capacity }

  /// Parses a list as Google publishes it: `{"entries": {SERIAL: {"status": "REVOKED", "reason": …}}}`.
  ///
  /// A serial number is hex, also where it looks decimal. Every entry counts, whatever its status: `SUSPENDED` is the
  /// other one that Google names. Longer numbers than a certificate can have are left out, since none is revoked by them; a
  /// list of such numbers alone is as one without entries.
  ///
  /// - Parameter allowsNone: whether a list without entries is accepted. Google's has hundreds.
  public init(_ json: [UInt8], allowsNone: Bool = false) throws(AndroidStatusListError) {
    guard json.count <= Self.maximumSize else { throw .tooLarge(json.count) }
    let entries = try Self.entries(in: json)
    guard entries.count <= Self.maximumEntries else { throw .tooManyEntries(entries.count) }
    var keys: [(serial: [UInt8], reason: UInt8)] = []
    keys.reserveCapacity(entries.count)
    var reasons: [String] = []
    for (text, entry) in entries {
      guard let number = Self.number(text) else { throw .malformedSerial(text) }
      guard let serial = Self.filledUp(number[...]) else { continue }
      keys.append((serial, Self.place(of: entry.reason ?? entry.status, in: &reasons)))
    }
    guard allowsNone || !keys.isEmpty else { throw .empty }
    keys.sort { $0.serial.lexicographicallyPrecedes($1.serial) }
    serials = keys.flatMap(\.serial)
    reasonNumbers = keys.map(\.reason)
    self.reasons = reasons
  }

  /// The reason why the certificate with this serial number, big-endian, is revoked; `nil` if it is not in the list.
  public func reason(forSerial serial: [UInt8]) -> String? {
    guard let serial = Self.filledUp(serial.drop { $0 == 0 }) else { return nil }
    var range = 0..<count
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      let start = middle * Self.serialSize
      let entry = serials[start..<start + Self.serialSize]
      if entry.elementsEqual(serial) { return reasons[Int(reasonNumbers[middle])] }
      range = entry.lexicographicallyPrecedes(serial) ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return nil
  }

  /// A serial number as the list has it: hex in lowercase without leading zeros.
  public static func text(ofSerial serial: [UInt8]) -> String {
    let digits = Hex.encode(serial).drop { $0 == "0" }
    return digits.isEmpty ? "0" : String(digits)
  }

  private struct Document: Decodable {
    struct Entry: Decodable {
      let status: String
      let reason: String?
    }
    let entries: [String: Entry]
  }

  private static func entries(in json: [UInt8]) throws(AndroidStatusListError) -> [String: Document.Entry] {
    guard json.contains(where: { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }) else { throw .empty }
    // A decoder alone would accept a list that names a certificate twice, or is followed by something.
    guard JSONGrammar.accepts(json, within: .none) else { throw .notJSON }
    do {
      return try JSONDecoder().decode(Document.self, from: Data(json)).entries
    } catch {
      throw .unexpectedStructure
    }
  }

  private static func number(_ text: String) -> [UInt8]? {
    let digits = text.utf8.drop { $0 == UInt8(ascii: "0") }
    guard !text.isEmpty else { return nil }
    return Hex.decode((digits.count % 2 == 0 ? "" : "0") + String(decoding: digits, as: UTF8.self))
  }

  private static func filledUp(_ serial: ArraySlice<UInt8>) -> [UInt8]? {
    guard serial.count <= serialSize else { return nil }
    return [UInt8](repeating: 0, count: serialSize - serial.count) + serial
  }

  /// The reasons are few. If there were many, the last one stands for the rest.
  private static func place(of reason: String, in reasons: inout [String]) -> UInt8 {
    if let number = reasons.firstIndex(of: reason) { return UInt8(number) }
    guard reasons.count < 255 else { return 254 }
    reasons.append(reason)
    return UInt8(reasons.count - 1)
  }
}

/// Why bytes are not a status list. A list that cannot be read must not count as one without entries.
public enum AndroidStatusListError: Error, Sendable, Hashable {
  /// The list has more bytes than `AndroidStatusList.maximumSize`.
  case tooLarge(Int)
  /// The list has more entries than `AndroidStatusList.maximumEntries`.
  case tooManyEntries(Int)
  /// The file has no bytes, or the list no entries that a certificate can have. Google's has hundreds.
  case empty
  /// Not one JSON text: truncated, damaged, or with two entries of one name.
  case notJSON
  /// JSON without `entries` in the form of Google's list.
  case unexpectedStructure
  /// The name of an entry is not a serial number in hex.
  case malformedSerial(String)
}

extension AndroidStatusListError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .tooLarge(let size): "the status list has \(size) bytes, where \(AndroidStatusList.maximumSize) are allowed"
    case .tooManyEntries(let count):
      "the status list has \(count) entries, where \(AndroidStatusList.maximumEntries) are allowed"
    case .empty: "the status list is empty"
    case .notJSON: "the status list is not JSON: it is truncated or damaged, or names a certificate twice"
    case .unexpectedStructure: "the status list is JSON without entries, each with a status"
    case .malformedSerial(let text): "the status list names \(text), which is not a serial number in hex"
    }
  }
}
