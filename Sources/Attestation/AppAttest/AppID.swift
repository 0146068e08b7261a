internal import Cryptography

/// The name of an app as Apple's platforms know it: team identifier, a dot, bundle identifier.
public struct AppID: Sendable, Hashable {
  /// The Apple Developer team ID: ten characters of A-Z and 0-9.
  public let teamID: String
  /// The bundle identifier of the app.
  public let bundleID: String
  /// The team ID and the bundle identifier, joined by a dot, as the RP ID hash covers them.
  public let text: String
  /// The RP ID hash that authenticator data contains for this app: SHA-256 of `text`, 32 bytes.
  public let hash: [UInt8]

  /// `nil` unless `teamID` is ten of `A-Z 0-9` and `bundleID` is one or more of `A-Z a-z 0-9 - . _`, with at most
  /// 255 characters, as in Apple's objects: the app of Apple's published sample has underscores.
  public init?(teamID: String, bundleID: String) {
    guard Self.isTeamID(teamID), Self.isBundleID(bundleID) else { return nil }
    self.teamID = teamID
    self.bundleID = bundleID
    text = "\(teamID).\(bundleID)"
    hash = SHA256.hash(Array(text.utf8))
  }

  /// Parses `TEAM.bundle`. The team identifier ends at the first dot.
  public init?(_ text: String) {
    guard let dot = text.firstIndex(of: ".") else { return nil }
    self.init(teamID: String(text[..<dot]), bundleID: String(text[text.index(after: dot)...]))
  }

  /// Ten of `A-Z 0-9`.
  public static func isTeamID(_ text: String) -> Bool {
    text.utf8.count == 10 && text.utf8.allSatisfy { isCapital($0) || isDigit($0) }
  }

  /// Whether `text` is a bundle identifier: letters, digits, `-`, `.` and `_`.
  public static func isBundleID(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count)
      && text.utf8.allSatisfy {
        isCapital($0) || isCapital($0 & 0xDF) || isDigit($0) || "-._".utf8.contains($0)
      }
  }

  private static func isCapital(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }
  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

// By `text`, which the other properties follow from.
extension AppID {
  public static func == (first: AppID, second: AppID) -> Bool { first.text == second.text }
  public func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

extension AppID: CustomStringConvertible {
  public var description: String { text }
}
