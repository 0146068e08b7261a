internal import AppAttest
public import AttestGate
internal import ByteCoding
public import SQLiteStore
public import SimulatedDevice

/// A gate without its network: a development authority, a store in a temporary folder, and a manual clock.
public struct GateBench: Sendable {
  public static let appID = "AAABBBCCC1.com.example.app"

  /// Created once, because generating its keys takes longer than most tests.
  private static let sharedAuthority = Result { try TestAuthority(appID: appID, at: ManualClock().now) }

  public let clock: ManualClock
  public let folder: TemporaryFolder
  public let store: SQLiteStore
  public let authority: TestAuthority
  public let challenges: Challenges
  public let identityKeys: IdentityKeys
  public let registrar: Registrar
  public let gate: Gate

  /// - Parameters:
  ///   - apps: `nil` for one app in the development environment.
  ///   - registry: `nil` for the bench's own store.
  public init(
    apps: [AppPolicy]? = nil, enforcement: Gate.Enforcement = .enforce, window: CounterWindow = .none,
    certificates: ClientCertificateRule? = ClientCertificateRule(), registry: (any KeyRegistry)? = nil,
    limiter: VerificationLimiter = VerificationLimiter(width: 1), stopwatch: Stopwatch = .none
  ) throws {
    clock = ManualClock()
    folder = try TemporaryFolder()
    store = SQLiteStore(path: folder.file("state.db"))
    authority = try Self.sharedAuthority.get()
    challenges = Challenges(ring: .random())
    identityKeys = IdentityKeys(storage: store, clock: clock.wallClock)
    let apps = try Self.served(apps)
    let registry = registry ?? store
    registrar = Registrar(
      apps: apps, verifier: Self.verifier(for: apps, trusting: authority), challenges: challenges, registry: registry,
      limiter: limiter, clock: clock.wallClock, stopwatch: stopwatch)
    let assertions = try AssertionRule(
      apps: apps, challenges: challenges, registry: registry, window: window, stopwatch: stopwatch)
    let rules: [(any AdmissionRule)?] = [assertions, certificates]
    gate = Gate(rules: rules.compactMap { $0 }, enforcement: enforcement, clock: clock.wallClock)
  }

  /// A registrar with another configuration, on the same store and with the same challenge keys.
  public func registrar(for apps: [AppPolicy]) throws -> Registrar {
    let apps = try Self.served(apps)
    return Registrar(
      apps: apps, verifier: Self.verifier(for: apps, trusting: authority), challenges: challenges, registry: store,
      clock: clock.wallClock)
  }

  /// A registrar that notes in `witness` what registrations show about the clock.
  public func registrar(witness: ClockWitness, challenges: Challenges? = nil) throws -> Registrar {
    let apps = try Self.served(nil)
    return Registrar(
      apps: apps, verifier: Self.verifier(for: apps, trusting: authority), challenges: challenges ?? self.challenges,
      registry: store, clock: clock.wallClock, witness: witness)
  }

  private static func served(_ apps: [AppPolicy]?) throws -> AllowedApps {
    guard let appID = AppID(appID),
      let served = AllowedApps(apps ?? [AppPolicy(appID: appID, environments: [.development])])
    else { throw FixtureError.unexpected }
    return served
  }

  private static func verifier(for apps: AllowedApps, trusting authority: TestAuthority) -> AttestationVerifier {
    AttestationVerifier(
      apps: apps.environments, attestationRoots: [authority.attestationRoot.certificate],
      receiptRoots: [authority.receiptRoot.certificate])
  }

  public func nonce() throws -> Nonce {
    guard let challenge = challenges.issue(at: clock.now) else { throw FixtureError.unexpected }
    return challenge.nonce
  }

  /// Returns a device whose key is not registered.
  public func device(
    environment: SimulatedEnvironment = .development, claims: AppClaims? = nil, appID: String = GateBench.appID
  ) throws -> MintedDevice {
    try MintedDevice(app: SimulatedApp(appID: appID, environment: environment, claims: claims), authority: authority)
  }

  /// Returns a device whose key is registered.
  public func registeredDevice(claims: AppClaims? = nil) async throws -> MintedDevice {
    let device = try device(claims: claims)
    try await register(device)
    return device
  }

  @discardableResult
  public func register(_ device: MintedDevice) async throws -> RegisteredKey {
    try await registrar.register(try device.registration(over: try nonce(), at: clock.now))
  }
}
