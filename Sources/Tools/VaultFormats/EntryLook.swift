internal import AuthenticatorVault
internal import Foundation

/// How another app shows an entry: its place in the list, its icon, whether it is a favorite.
///
/// This program does not interpret it. It is kept among the other members of the entry and written again to a file of
/// the same app.
enum EntryLook {
  /// The most bytes of the look of an entry, as JSON. Icons of services have a few thousand.
  static let longest = 32_768
  /// The most bytes of all looks of a file. A vault is read as a whole by each command.
  static let longestInFile = 2 << 20
  /// The member with the place in the list.
  private static let position = "position"

  /// Where the look is kept in an entry of the vault; `nil` for a format that is not written.
  private static func member(_ format: VaultFormat) -> String? {
    switch format {
    case .aegis: "aegisLook"
    case .twoFAS: "2fasLook"
    default: nil
    }
  }

  /// The looks of a file, as they are read.
  struct Keeper {
    let format: VaultFormat
    private var rest = longestInFile
    /// The entries whose icons are left out.
    private(set) var notes: [ImportFault] = []

    init(_ format: VaultFormat) { self.format = format }

    /// What is kept of the entry `name` at `index` of the list.
    ///
    /// - Parameters:
    ///   - small: Members of a few bytes.
    ///   - icon: The members of the icon, which are left out if they are too long.
    mutating func kept(
      _ small: [String: JSONValue?], icon: [String: JSONValue?], at index: Int64, of name: String
    ) -> [String: JSONValue] {
      guard let member = member(format) else { return [:] }
      var look = small.compactMapValues { $0 }.filter { length(of: $0.value) <= 256 }
      look[position] = .integer(index)
      let whole = look.merging(icon.compactMapValues { $0 }) { first, _ in first }
      let count = length(of: .object(whole))
      if count <= min(longest, rest) {
        look = whole
        rest -= count
      } else {
        let most = count > longest ? "\(longest)" : "\(longestInFile) of all icons"
        notes.append(
          ImportFault(place: name, reason: "its icon is left out: it has \(count) bytes, and \(most) are the most"))
      }
      return [member: .object(look)]
    }
  }

  /// The bytes of `value` as JSON; many more than are kept if it has none.
  private static func length(of value: JSONValue) -> Int { (try? JSONEncoder().encode(value).count) ?? .max / 2 }

  /// What was kept of `entry` for `format`.
  static func of(_ entry: VaultEntry, _ format: VaultFormat) -> [String: JSONValue] {
    guard let member = member(format), case .object(let look)? = entry.otherFields[member] else { return [:] }
    return look
  }

  /// `entries` in the order of the app, and those that it does not know after them.
  static func ordered(_ entries: [VaultEntry], for format: VaultFormat) -> [VaultEntry] {
    let places = entries.enumerated().map { index, entry -> (place: Int64, index: Int) in
      guard case .integer(let place)? = of(entry, format)[position] else { return (.max, index) }
      return (place, index)
    }
    return zip(places, entries).sorted { $0.0 < $1.0 }.map(\.1)
  }

  /// `entry` without the looks that other apps gave it.
  static func removed(from entry: VaultEntry) -> VaultEntry {
    var entry = entry
    for member in VaultFormat.allCases.compactMap(member) { entry.otherFields[member] = nil }
    return entry
  }

  /// What of the look of `entry` for `format` is not in `again`, apart from the numbers of places: a file has them from 0.
  static func isKept(of entry: VaultEntry, in again: VaultEntry, _ format: VaultFormat) -> Bool {
    let (old, new) = (of(entry, format), of(again, format))
    return old.allSatisfy { $0.key == position || new[$0.key] == $0.value }
  }
}

/// A member that is kept as it is, or left out if it is no value that can be kept.
struct LooseValue: Decodable {
  let value: JSONValue?

  init(from decoder: any Decoder) { value = try? JSONValue(from: decoder) }

  /// The value if it is a text.
  var text: JSONValue? { if case .string? = value { value } else { nil } }
  /// The value if it is an object.
  var object: JSONValue? { if case .object? = value { value } else { nil } }
}
