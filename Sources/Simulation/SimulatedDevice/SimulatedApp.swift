/// The simulated App Attest environment.
public enum SimulatedEnvironment: String, Sendable, Hashable, CaseIterable {
  /// Apple's sandbox.
  case development
  /// Production.
  case production

  /// The AAGUID of authenticator data, 16 bytes.
  public var aaguid: [UInt8] {
    switch self {
    case .development: Array("appattestdevelop".utf8)
    case .production: Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)
    }
  }

  /// The word for the environment in a receipt.
  public var receiptName: String {
    switch self {
    case .development: "sandbox"
    case .production: "production"
    }
  }
}

/// The app that a simulated device runs.
public struct SimulatedApp: Sendable, Hashable {
  /// `TEAM.bundle`.
  public var appID: String
  /// The environment in which the app makes keys.
  public var environment: SimulatedEnvironment
  /// The claims about the app that devices report since iOS 27; `nil` for older devices.
  public var claims: AppClaims?

  /// Creates an app.
  public init(appID: String, environment: SimulatedEnvironment = .development, claims: AppClaims? = nil) {
    self.appID = appID
    self.environment = environment
    self.claims = claims
  }
}

/// The extensions of authenticator data.
public struct AppClaims: Sendable, Hashable {
  /// The source from which the app was installed, `apple_validation_category_01`: 3 is development, 4 the App Store.
  public var validationCategory: UInt32
  /// `CFBundleVersion`, `apple_bundle_version_01`.
  public var bundleVersion: String

  /// Creates claims.
  public init(validationCategory: UInt32 = 3, bundleVersion: String = "1") {
    self.validationCategory = validationCategory
    self.bundleVersion = bundleVersion
  }
}
