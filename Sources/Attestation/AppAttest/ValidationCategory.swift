/// The source from which an app was installed, as iOS 27 and later attest it.
///
/// Numbers without a name are kept. A policy that lists allowed sources refuses them.
public struct ValidationCategory: RawRepresentable, Sendable, Hashable {
  public let rawValue: UInt32
  /// Creates the category with Apple's number. Unknown numbers are valid.
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Part of the operating system.
  public static let operatingSystem = ValidationCategory(rawValue: 1)
  /// The app was installed with TestFlight.
  public static let testFlight = ValidationCategory(rawValue: 2)
  /// The app was installed from Xcode with a development profile.
  public static let development = ValidationCategory(rawValue: 3)
  /// The app was installed from the App Store.
  public static let appStore = ValidationCategory(rawValue: 4)
  /// Enterprise or ad hoc distribution.
  public static let enterprise = ValidationCategory(rawValue: 5)
  /// The app was signed with a Developer ID.
  public static let developerID = ValidationCategory(rawValue: 6)
  /// The app was installed in a way that has no other category.
  public static let other = ValidationCategory(rawValue: 10)

  /// The named categories with their words in configuration, logs and reports.
  public static let names: [(category: ValidationCategory, name: String)] = [
    (.operatingSystem, "os"), (.testFlight, "testflight"), (.development, "development"), (.appStore, "app_store"),
    (.enterprise, "enterprise"), (.developerID, "developer_id"), (.other, "other"),
  ]

  /// Creates the category with this name; `nil` for an unknown name.
  public init?(name: String) {
    guard let entry = Self.names.first(where: { $0.name == name }) else { return nil }
    self = entry.category
  }

  /// The category's word, or its number in decimal digits if Apple has not named it.
  public var name: String { Self.names.first { $0.category == self }?.name ?? String(rawValue) }
}

extension ValidationCategory: CustomStringConvertible {
  public var description: String { name }
}
