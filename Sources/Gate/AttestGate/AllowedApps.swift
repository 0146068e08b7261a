public import AppAttest

/// An app that the gate lets in, and how strictly.
public struct AppPolicy: Sendable, Hashable {
  public let appID: AppID
  public let environments: Set<AttestEnvironment>
  public let categories: CategoryPolicy

  public init(appID: AppID, environments: Set<AttestEnvironment>, categories: CategoryPolicy = .any) {
    self.appID = appID
    self.environments = environments
    self.categories = categories
  }
}

/// From where an app may have been installed (iOS 27 and later say so).
public struct CategoryPolicy: Sendable, Hashable {
  public enum Missing: String, Sendable, Hashable, CaseIterable { case accept, refuse }

  /// `nil` allows each.
  public let allowed: Set<ValidationCategory>?
  public let whenMissing: Missing

  public init(allowed: Set<ValidationCategory>?, whenMissing: Missing) {
    self.allowed = allowed
    self.whenMissing = whenMissing
  }

  public static let any = CategoryPolicy(allowed: nil, whenMissing: .accept)

  /// Whether a device that reported `category` is let in; `nil` if it reported none.
  public func admits(_ category: ValidationCategory?) -> Bool {
    guard let category else { return whenMissing == .accept }
    return allowed?.contains(category) ?? true
  }
}

/// The apps of a configuration.
public struct AllowedApps: Sendable {
  private let policies: [AppID: AppPolicy]

  /// `nil` if an app is listed twice.
  public init?(_ policies: [AppPolicy]) {
    let pairs = policies.map { ($0.appID, $0) }
    self.policies = Dictionary(pairs) { first, _ in first }
    guard self.policies.count == policies.count else { return nil }
  }

  /// No app at all: nothing can be registered.
  public static let none = AllowedApps()

  private init() { policies = [:] }

  public var isEmpty: Bool { policies.isEmpty }

  /// What the attestation verifier needs to know of them.
  public var environments: [AppID: Set<AttestEnvironment>] { policies.mapValues(\.environments) }

  public subscript(appID: AppID) -> AppPolicy? { policies[appID] }
}
